// Basic functions, as in model/exact.py. The order of float32 sums does not depend on the processor's vector width: 16
// lanes are summed in parallel, and then added pairwise. No operation is fused or reordered.

enum { LANES = 16 };
typedef float Lanes __attribute__((vector_size(64)));
typedef uint32_t Bits __attribute__((vector_size(64)));
typedef int32_t Whole __attribute__((vector_size(64)));

static inline Lanes load(const float *x) { Lanes v; memcpy(&v, x, sizeof v); return v; }
static inline void store(float *x, Lanes v) { memcpy(x, &v, sizeof v); }
static inline Lanes all(float x) { return (Lanes){0} + x; }
static inline Lanes choose(Bits mask, Lanes yes, Lanes no) { return (Lanes)((mask & (Bits)yes) | (~mask & (Bits)no)); }
static inline Lanes absolute(Lanes x) { return (Lanes)((Bits)x & 0x7FFFFFFFu); }
static inline Lanes larger(Lanes x, Lanes y) { return choose((Bits)(x > y), x, y); }
static inline int32_t in_lanes(int32_t n) { return (n + LANES - 1) / LANES * LANES; }

// Load the first n numbers, at most 16, padded with zeros.
static inline Lanes load_some(const float *x, int32_t n) {
  Lanes v = {0};
  if (n >= LANES) return load(x);
  if (n > 0) memcpy(&v, x, (size_t)n * sizeof *x);
  return v;
}

static inline void store_some(float *x, Lanes v, int32_t n) {
  if (n >= LANES) store(x, v);
  else memcpy(x, &v, (size_t)n * sizeof *x);
}

static inline float fold(Lanes v) {
  float t[LANES];
  store(t, v);
  for (int n = LANES / 2; n; n /= 2)
    for (int i = 0; i < n; i++) t[i] = t[i] + t[i + n];
  return t[0];
}

// Return the sum of a row, or of its squares.
static inline float sum(const float *x, int32_t n, const int squared) {
  Lanes total = {0};
  for (int32_t i = 0; i < n; i += LANES) total = total + load_some(x + i, n - i) * (squared ? load_some(x + i, n - i) : all(1.0f));
  return fold(total);
}

static inline float largest_of(Lanes v) {
  float t[LANES];
  store(t, v);
  for (int n = LANES / 2; n; n /= 2)
    for (int i = 0; i < n; i++) t[i] = t[i + n] > t[i] ? t[i + n] : t[i];
  return t[0];
}

// n is a multiple of 16.
static float largest(const float *x, int32_t n) {
  Lanes most = all(-INFINITY);
  for (int32_t i = 0; i < n; i += LANES) most = larger(load(x + i), most);
  return largest_of(most);
}

// Round to the nearest integer, with ties to even, for |x| < 2^22. Adding 1.5 * 2^23 leaves no bits for a fraction.
#define ROUNDS 12582912.0f
#define ROUNDS_BITS 0x4B400000u

// Compute e^x as 2^n e^r with |r| <= log(2) / 2, with a polynomial for e^r (Cephes). 0 below -87, and e^88 above 88.
static inline Lanes exp_(Lanes x) {
  static const float c[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
  Bits vanishes = (Bits)(x < -87.0f);
  x = choose(vanishes, all(-87.0f), x);
  x = choose((Bits)(x > 88.0f), all(88.0f), x);
  Lanes shifted = x * 1.44269504f + ROUNDS, n = shifted - ROUNDS;
  Lanes r = (x - n * 0.693359375f) - n * -2.12194440e-4f, y = all(c[0]);
  for (int k = 1; k < 6; k++) y = y * r + c[k];
  y = y * (r * r) + r;
  y = y + 1.0f;
  Bits power = ((Bits)shifted - ROUNDS_BITS + 127u) << 23;
  return choose(vanishes, (Lanes){0}, y * (Lanes)power);
}

// Compute log x for positive normal numbers (Cephes).
static float log_(float x) {
  static const float c[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,  -1.2420140846e-1f, 1.4249322787e-1f,
                            -1.6668057665e-1f, 2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  float e = (float)((int32_t)(bits >> 23) - 126), m, p = c[0];
  bits = (bits & 0x007FFFFFu) | 0x3F000000u; // 0.5 <= m < 1
  memcpy(&m, &bits, sizeof m);
  if (m < 0.70710678f) m = m + m, e = e - 1.0f;
  float f = m - 1.0f, z = f * f;
  for (int k = 1; k < 9; k++) p = p * f + c[k];
  float y = f * (z * p);
  y = y + e * -2.12194440e-4f;
  y = y - 0.5f * z;
  y = f + y;
  return y + e * 0.693359375f;
}

// Return the sum of exp(x - most), where n is a multiple of 16. The terms are stored in `to`, unless it is NULL. The
// term of -infinity is 0.
static inline float exp_sum(const float *x, int32_t n, float most, float *to) {
  Lanes total = {0};
  for (int32_t i = 0; i < n; i += LANES) {
    Lanes e = exp_(load(x + i) - most);
    if (to) store(to + i, e);
    total = total + e;
  }
  return fold(total);
}

// Compute exp(x_i) / sum_j exp(x_j), in place. Eq. 1.
static void softmax(float *x, int32_t n) {
  float total = exp_sum(x, n, largest(x, n), x);
  for (int32_t i = 0; i < n; i += LANES) store(x + i, load(x + i) / total);
}

// Compute max(0, x). Eq. 2.
static inline Lanes relu(Lanes x) { return larger(x, (Lanes){0}); }

// Compute 1 / (1 + e^-x) in a form that never overflows.
static inline Lanes sigmoid(Lanes x) {
  Lanes e = exp_(-absolute(x));
  return choose((Bits)(x >= 0.0f), all(1.0f), e) / (1.0f + e);
}

static inline Lanes swish(Lanes x) { return x * sigmoid(x); }

// Compute x times the normal distribution function, with erf by Abramowitz and Stegun 7.1.26 (error up to 1.5e-7).
static inline Lanes gelu(Lanes x) {
  static const float c[] = {1.061405429f, -1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f};
  Lanes z = absolute(x) * 0.70710678f, t = 1.0f / (1.0f + 0.3275911f * z), p = all(c[0]);
  for (int k = 1; k < 5; k++) p = p * t + c[k];
  Lanes erf = 1.0f - (p * t) * exp_(-(z * z));
  return x * (0.5f * (1.0f + choose((Bits)(x >= 0.0f), erf, -erf)));
}

enum { RELU, GELU, SWISH, SIGMOID }; // the values of ACTIVATION, and the gate of a recurrent cell

// Apply an activation to rows, in place.
static void activate(int32_t kind, float *x, int32_t rows, int32_t n) {
  for (; rows > 0; rows--, x += n)
    for (int32_t i = 0; i < n; i += LANES) {
      Lanes v = load_some(x + i, n - i);
      store_some(x + i, kind == RELU ? relu(v) : kind == GELU ? gelu(v) : kind == SWISH ? swish(v) : sigmoid(v), n - i);
    }
}
