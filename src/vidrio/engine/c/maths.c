// The small functions that everything is made of, as in glass/engine.py. A float32 sum has one order, whatever the
// width of the processor's vectors: 16 lanes side by side, then folded by halves. Nothing is fused, nothing reordered.

enum { LANES = 16 };
typedef float Lanes __attribute__((vector_size(64)));
typedef uint32_t Bits __attribute__((vector_size(64)));
typedef int32_t Whole __attribute__((vector_size(64)));
typedef uint8_t Bytes __attribute__((vector_size(16)));

static inline Lanes load(const float *x) { Lanes v; memcpy(&v, x, sizeof v); return v; }
static inline void store(float *x, Lanes v) { memcpy(x, &v, sizeof v); }
static inline Whole load_whole(const int32_t *x) { Whole v; memcpy(&v, x, sizeof v); return v; }
static inline Lanes all(float x) { return (Lanes){0} + x; }
static inline Lanes choose(Bits mask, Lanes yes, Lanes no) { return (Lanes)((mask & (Bits)yes) | (~mask & (Bits)no)); }
static inline int32_t in_lanes(int32_t n) { return (n + LANES - 1) / LANES * LANES; }

// The first n < 16 numbers, zeros after them.
static inline Lanes load_part(const float *x, int32_t n) {
  float part[LANES] = {0};
  memcpy(part, x, (size_t)n * sizeof *x);
  return load(part);
}

static inline void store_part(float *x, Lanes v, int32_t n) {
  float part[LANES];
  store(part, v);
  memcpy(x, part, (size_t)n * sizeof *x);
}

static inline float fold(Lanes v) {
  float t[LANES];
  store(t, v);
  for (int n = LANES / 2; n; n /= 2)
    for (int i = 0; i < n; i++) t[i] = t[i] + t[i + n];
  return t[0];
}

static float sum(const float *x, int32_t n) {
  Lanes total = {0};
  int32_t i = 0;
  for (; i + LANES <= n; i += LANES) total = total + load(x + i);
  return fold(i < n ? total + load_part(x + i, n - i) : total);
}

static float sum_of_squares(const float *x, int32_t n) {
  Lanes total = {0};
  int32_t i = 0;
  for (; i + LANES <= n; i += LANES) total = total + load(x + i) * load(x + i);
  return fold(i < n ? total + load_part(x + i, n - i) * load_part(x + i, n - i) : total);
}

static float largest(const float *x, int32_t n) {
  Lanes most = all(-INFINITY);
  int32_t i = 0;
  for (; i + LANES <= n; i += LANES) most = choose((Bits)(load(x + i) > most), load(x + i), most);
  float t[LANES], top;
  store(t, most);
  top = t[0];
  for (int k = 1; k < LANES; k++) top = t[k] > top ? t[k] : top;
  for (; i < n; i++) top = x[i] > top ? x[i] : top;
  return top;
}

// |x| < 2^22, rounded to the nearest whole number, halves to even: adding 1.5 * 2^23 leaves no bits for a fraction.
#define ROUNDS 12582912.0f
#define ROUNDS_BITS 0x4B400000u

// e^x by 2^n e^r with |r| <= log(2) / 2 and a polynomial for e^r (Cephes); 0 below -87, e^88 above 88.
static inline Lanes exp_(Lanes x) {
  Bits vanishes = (Bits)(x < -87.0f);
  x = choose(vanishes, all(-87.0f), x);
  x = choose((Bits)(x > 88.0f), all(88.0f), x);
  Lanes shifted = x * 1.44269504f + ROUNDS, n = shifted - ROUNDS;
  Lanes r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  Lanes y = all(1.9875691500e-4f);
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r;
  y = y + 1.0f;
  Bits power = ((Bits)shifted - ROUNDS_BITS + 127u) << 23;
  return choose(vanishes, (Lanes){0}, y * (Lanes)power);
}

static float exp_of(float x) { return exp_(all(x))[0]; }

// log x of a positive number that is not subnormal (Cephes).
static float log_(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  float e = (float)((int32_t)(bits >> 23) - 126), m;
  bits = (bits & 0x007FFFFFu) | 0x3F000000u; // 0.5 <= m < 1
  memcpy(&m, &bits, sizeof m);
  if (m < 0.70710678f) {
    m = m + m;
    e = e - 1.0f;
  }
  float f = m - 1.0f, z = f * f, p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  float y = f * (z * p);
  y = y + e * -2.12194440e-4f;
  y = y - 0.5f * z;
  y = f + y;
  return y + e * 0.693359375f;
}

// exp(x - max) in place, n a multiple of 16; what is -infinity becomes 0. Returns their sum.
static float exp_sum(float *x, int32_t n, float most) {
  Lanes total = {0};
  for (int32_t i = 0; i < n; i += LANES) {
    Lanes e = exp_(load(x + i) - most);
    store(x + i, e);
    total = total + e;
  }
  return fold(total);
}

// log of the sum of exp(x - max), n a multiple of 16.
static float log_sum(const float *x, int32_t n, float most) {
  Lanes total = {0};
  for (int32_t i = 0; i < n; i += LANES) total = total + exp_(load(x + i) - most);
  return log_(fold(total));
}

// exp(x_i) / sum_j exp(x_j), in place. Eq. 1.
static void softmax(float *x, int32_t n) {
  float total = exp_sum(x, n, largest(x, n));
  for (int32_t i = 0; i < n; i += LANES) store(x + i, load(x + i) / total);
}

// max(0, x). Eq. 2.
static inline Lanes relu(Lanes x) { return choose((Bits)(x > 0.0f), x, (Lanes){0}); }

static inline Lanes absolute(Lanes x) { return (Lanes)((Bits)x & 0x7FFFFFFFu); }

// x / (1 + e^-x), written so that neither end overflows.
static inline Lanes swish(Lanes x) {
  Lanes e = exp_(-absolute(x));
  return x * (choose((Bits)(x >= 0.0f), all(1.0f), e) / (1.0f + e));
}

// x times the normal distribution function, with erf by Abramowitz and Stegun 7.1.26 (off by at most 1.5e-7).
static inline Lanes gelu(Lanes x) {
  Lanes z = absolute(x) * 0.70710678f, t = 1.0f / (1.0f + 0.3275911f * z);
  Lanes p = 1.061405429f * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  Lanes erf = 1.0f - (p * t) * exp_(-(z * z));
  return x * (0.5f * (1.0f + choose((Bits)(x >= 0.0f), erf, -erf)));
}

static void activate(int32_t kind, const float *x, int32_t n, float *y) {
  Lanes (*function)(Lanes) = kind == 0 ? relu : kind == 1 ? gelu : swish;
  int32_t i = 0;
  if (kind == 0) for (; i + LANES <= n; i += LANES) store(y + i, relu(load(x + i)));
  else for (; i + LANES <= n; i += LANES) store(y + i, function(load(x + i)));
  if (i < n) store_part(y + i, function(load_part(x + i, n - i)), n - i);
}
