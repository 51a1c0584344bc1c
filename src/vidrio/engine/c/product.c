// x W + b. Weights are whole numbers from -63 to 63 with a scale for each column, rows become whole numbers from -127 to
// 127 with a scale each, and the products are exact: two of them fit into 16 bits, so no instruction set can overflow.
// A model may also keep float32 matrices; then each sum runs over k from the first to the last.
//
// Columns come in blocks of 16 and, for whole numbers, k in groups of 4: [out / 16][in / 4][16][4].

enum { COLUMNS = 16, GROUP = 4, MOST_WEIGHT = 63, MOST_INPUT = 127 };

typedef struct {
  int32_t in, out;   // as the paper has them
  int32_t depth;     // in, filled up to a multiple of 4
  int32_t blocks;    // out, in blocks of 16
  int8_t *whole;     // packed; or
  float *values;     // packed, of a float32 matrix
  float *scale;      // of each column
  int32_t *sum;      // of each column's whole numbers
  const float *bias; // or NULL
} Matrix;

// Rows made ready to be multiplied: whole numbers with a scale each, or just float32.
typedef struct { const float *x; uint8_t *whole; float *scale; int32_t *sum; } Rows;

// --- four products added to each of 16 columns: `dot`, once for each instruction set ----------------------------------
// The plain version says what the others do. Inputs are stored as bytes x + 128 where the instruction wants them without
// a sign, and 128 * sum(w) is taken off afterwards (SHIFT); WebAssembly's wants that of the weights (w + 64).

#if defined(__AVX512VNNI__)
typedef __m512i Sums;
enum { TALL = 4, WIDE = 4, SHIFT_INPUT = 128, SHIFT_WEIGHT = 0 };
static inline Sums dot(Sums a, const uint8_t *x, const int8_t *w) {
  int32_t four;
  memcpy(&four, x, sizeof four);
  return _mm512_dpbusd_epi32(a, _mm512_set1_epi32(four), _mm512_loadu_si512(w));
}
static inline void read_sums(int32_t *to, Sums a) { _mm512_storeu_si512(to, a); }

#elif defined(__AVX2__)
typedef struct { __m256i low, high; } Sums;
enum { TALL = 4, WIDE = 1, SHIFT_INPUT = 128, SHIFT_WEIGHT = 0 };
static inline Sums dot(Sums a, const uint8_t *x, const int8_t *w) {
  int32_t four;
  memcpy(&four, x, sizeof four);
  __m256i q = _mm256_set1_epi32(four), ones = _mm256_set1_epi16(1);
  __m256i low = _mm256_maddubs_epi16(q, _mm256_loadu_si256((const __m256i *)w));
  __m256i high = _mm256_maddubs_epi16(q, _mm256_loadu_si256((const __m256i *)(w + 32)));
  return (Sums){_mm256_add_epi32(a.low, _mm256_madd_epi16(low, ones)), _mm256_add_epi32(a.high, _mm256_madd_epi16(high, ones))};
}
static inline void read_sums(int32_t *to, Sums a) {
  _mm256_storeu_si256((__m256i *)to, a.low);
  _mm256_storeu_si256((__m256i *)(to + 8), a.high);
}

#elif defined(__ARM_NEON)
typedef struct { int32x4_t part[4]; } Sums;
enum { TALL = 4, WIDE = 1, SHIFT_INPUT = 0, SHIFT_WEIGHT = 0 };
static inline Sums dot(Sums a, const uint8_t *x, const int8_t *w) {
  int32_t four;
  memcpy(&four, x, sizeof four);
  int8x16_t q = vreinterpretq_s8_s32(vdupq_n_s32(four));
  for (int j = 0; j < 4; j++) {
    int8x16_t weights = vld1q_s8(w + 16 * j);
#if defined(__ARM_FEATURE_DOTPROD)
    a.part[j] = vdotq_s32(a.part[j], weights, q);
#else
    int16x8_t low = vmull_s8(vget_low_s8(weights), vget_low_s8(q)), high = vmull_high_s8(weights, q);
    a.part[j] = vpadalq_s16(a.part[j], vpaddq_s16(low, high)); // four of at most 127 * 63 fit into 16 bits
#endif
  }
  return a;
}
static inline void read_sums(int32_t *to, Sums a) {
  for (int j = 0; j < 4; j++) vst1q_s32(to + 4 * j, a.part[j]);
}

#elif defined(__wasm_relaxed_simd__)
typedef struct { v128_t part[4]; } Sums;
enum { TALL = 2, WIDE = 1, SHIFT_INPUT = 0, SHIFT_WEIGHT = 64 };
static inline Sums dot(Sums a, const uint8_t *x, const int8_t *w) {
  v128_t q = wasm_v128_load32_splat(x);
  for (int j = 0; j < 4; j++) // w + 64 has seven bits, so what the instruction leaves open does not show
    a.part[j] = wasm_i32x4_relaxed_dot_i8x16_i7x16_add(q, wasm_v128_load(w + 16 * j), a.part[j]);
  return a;
}
static inline void read_sums(int32_t *to, Sums a) {
  for (int j = 0; j < 4; j++) wasm_v128_store(to + 4 * j, a.part[j]);
}

#elif defined(__wasm_simd128__)
typedef struct { v128_t part[4][2]; } Sums; // of the first and of the last two of each column's four products
enum { TALL = 1, WIDE = 1, SHIFT_INPUT = 0, SHIFT_WEIGHT = 0 };
static inline Sums dot(Sums a, const uint8_t *x, const int8_t *w) {
  v128_t q = wasm_v128_load32_splat(x);
  for (int j = 0; j < 4; j++) {
    v128_t weights = wasm_v128_load(w + 16 * j);
    v128_t low = wasm_i16x8_extmul_low_i8x16(weights, q), high = wasm_i16x8_extmul_high_i8x16(weights, q);
    a.part[j][0] = wasm_i32x4_add(a.part[j][0], wasm_i32x4_extadd_pairwise_i16x8(low));
    a.part[j][1] = wasm_i32x4_add(a.part[j][1], wasm_i32x4_extadd_pairwise_i16x8(high));
  }
  return a;
}
static inline void read_sums(int32_t *to, Sums a) {
  for (int j = 0; j < 4; j++) {
    v128_t even = wasm_i32x4_shuffle(a.part[j][0], a.part[j][1], 0, 2, 4, 6);
    v128_t odd = wasm_i32x4_shuffle(a.part[j][0], a.part[j][1], 1, 3, 5, 7);
    wasm_v128_store(to + 4 * j, wasm_i32x4_add(even, odd));
  }
}

#else
typedef struct { int32_t column[COLUMNS]; } Sums;
enum { TALL = 1, WIDE = 1, SHIFT_INPUT = 0, SHIFT_WEIGHT = 0 };
static inline Sums dot(Sums a, const uint8_t *x, const int8_t *w) {
  for (int j = 0; j < COLUMNS; j++)
    for (int k = 0; k < GROUP; k++) a.column[j] += (int8_t)x[k] * w[GROUP * j + k];
  return a;
}
static inline void read_sums(int32_t *to, Sums a) { memcpy(to, &a, sizeof a); }
#endif

// --- tiles: some rows times some blocks of columns --------------------------------------------------------------------

#define ALWAYS_INLINE static inline __attribute__((always_inline))

// y = product * (scale of the row * scale of the column) + b; `product` gets the whole numbers if somebody looks.
ALWAYS_INLINE void scale_block(const Matrix *W, int32_t block, const int chains, const Sums *sums, float row_scale, int32_t row_sum, float *y,
                               float *product) {
  int32_t c = block * COLUMNS, n = W->out - c < COLUMNS ? W->out - c : COLUMNS, s[COLUMNS];
  Whole total = -SHIFT_INPUT * load_whole(W->sum + c) - SHIFT_WEIGHT * row_sum;
#pragma GCC unroll 4
  for (int k = 0; k < chains; k++) {
    read_sums(s, sums[k]);
    total = total + load_whole(s);
  }
  Lanes raw = __builtin_convertvector(total, Lanes), v = raw * (row_scale * load(W->scale + c));
  if (W->bias) v = v + load(W->bias + c);
  if (n == COLUMNS) store(y + c, v);
  else store_part(y + c, v, n);
  if (product) store_part(product + c, raw, n);
}

// `chains` sums side by side over k: of few rows one addition would wait for the one before. Whole numbers do not mind.
ALWAYS_INLINE void tile(const int tall, const int wide, const int chains, const Matrix *W, int32_t block, const Rows *x, int32_t row, float *y,
                        int32_t stride, float *product) {
  Sums sums[16];
  size_t depth = (size_t)W->depth, size = depth * COLUMNS, k = 0;
  const int8_t *w = W->whole + (size_t)block * size;
  const uint8_t *q = x->whole + (size_t)row * depth;
#pragma GCC unroll 16
  for (int i = 0; i < tall * wide * chains; i++) memset(&sums[i], 0, sizeof(Sums));
  for (; k + (size_t)chains * GROUP <= depth; k += (size_t)chains * GROUP)
#pragma GCC unroll 8
    for (int c = 0; c < chains; c++)
#pragma GCC unroll 4
      for (int b = 0; b < wide; b++)
#pragma GCC unroll 8
        for (int r = 0; r < tall; r++) {
          size_t at = k + (size_t)c * GROUP;
          sums[(r * wide + b) * chains + c] = dot(sums[(r * wide + b) * chains + c], q + (size_t)r * depth + at, w + (size_t)b * size + at * COLUMNS);
        }
  for (; k < depth; k += GROUP)
#pragma GCC unroll 4
    for (int b = 0; b < wide; b++)
#pragma GCC unroll 8
      for (int r = 0; r < tall; r++)
        sums[(r * wide + b) * chains] = dot(sums[(r * wide + b) * chains], q + (size_t)r * depth + k, w + (size_t)b * size + k * COLUMNS);
#pragma GCC unroll 8
  for (int r = 0; r < tall; r++)
#pragma GCC unroll 4
    for (int b = 0; b < wide; b++) {
      size_t at = (size_t)(row + r) * (size_t)stride;
      scale_block(W, block + b, chains, &sums[(r * wide + b) * chains], x->scale[row + r], x->sum[row + r], y + at, product ? product + at : NULL);
    }
}

ALWAYS_INLINE void float_tile(const int tall, const Matrix *W, int32_t block, const Rows *x, int32_t row, float *y, int32_t stride) {
  Lanes sums[4];
  const float *w = W->values + (size_t)block * (size_t)W->in * COLUMNS;
#pragma GCC unroll 4
  for (int r = 0; r < tall; r++) sums[r] = (Lanes){0};
  for (int32_t k = 0; k < W->in; k++)
#pragma GCC unroll 4
    for (int r = 0; r < tall; r++) sums[r] = sums[r] + x->x[(size_t)(row + r) * (size_t)W->in + (size_t)k] * load(w + (size_t)k * COLUMNS);
  int32_t c = block * COLUMNS, n = W->out - c < COLUMNS ? W->out - c : COLUMNS;
  for (int r = 0; r < tall; r++) {
    if (W->bias) sums[r] = sums[r] + load(W->bias + c);
    store_part(y + (size_t)(row + r) * (size_t)stride + c, sums[r], n);
  }
}

#define EACH_BLOCK(wide, ...) \
  for (; block + (wide) <= W->blocks; block += (wide)) __VA_ARGS__

// x W + b for `rows` rows; a row of y is `stride` long. `product` is NULL unless somebody looks.
static void linear(const Matrix *W, const Rows *x, int32_t rows, float *y, int32_t stride, float *product) {
  int32_t block = 0, row = 0;
  if (W->values) {
    EACH_BLOCK(1, {
      for (row = 0; row + 4 <= rows; row += 4) float_tile(4, W, block, x, row, y, stride);
      for (; row < rows; row++) float_tile(1, W, block, x, row, y, stride);
    })
    return;
  }
  int32_t tall = rows - rows % TALL;
  if (tall) {
    EACH_BLOCK(WIDE, for (row = 0; row < tall; row += TALL) tile(TALL, WIDE, 1, W, block, x, row, y, stride, product);)
    EACH_BLOCK(1, for (row = 0; row < tall; row += TALL) tile(TALL, 1, 1, W, block, x, row, y, stride, product);)
  }
  row = tall;
  for (; row + 2 <= rows; row += 2)
    for (block = 0; block < W->blocks; block++) tile(2, 1, 2, W, block, x, row, y, stride, product);
  for (; row < rows; row++)
    for (block = 0; block < W->blocks; block++) tile(1, 1, 4, W, block, x, row, y, stride, product);
}

// --- rows become whole numbers ----------------------------------------------------------------------------------------

// scale = max |x| / 127, whole = x / scale, rounded. `depth` bytes a row; those after its d numbers are zeros.
static void whole_rows(const float *x, int32_t rows, int32_t d, int32_t depth, Rows *to) {
  for (int32_t r = 0; r < rows; r++, x += d) {
    Lanes most = {0};
    int32_t i = 0;
    for (; i + LANES <= d; i += LANES) {
      Lanes size = absolute(load(x + i));
      most = choose((Bits)(size > most), size, most);
    }
    float t[LANES], top = 0;
    store(t, i < d ? choose((Bits)(absolute(load_part(x + i, d - i)) > most), absolute(load_part(x + i, d - i)), most) : most);
    for (int k = 0; k < LANES; k++) top = t[k] > top ? t[k] : top;
    float scale = top >= 0x1p-100f ? top / MOST_INPUT : 1.0f, inverse = 1.0f / scale;
    to->scale[r] = scale;
    uint8_t *q = to->whole + (size_t)r * (size_t)depth;
    int32_t total = 0;
    for (i = 0; i < depth; i += LANES) {
      int32_t n = d - i < LANES ? d - i : LANES, room = depth - i < LANES ? depth - i : LANES;
      Lanes v = n == LANES ? load(x + i) : load_part(x + i, n > 0 ? n : 0);
      Bits whole = (Bits)(v * inverse + ROUNDS) - (ROUNDS_BITS - SHIFT_INPUT); // its low bytes are the whole numbers
      Bytes b = __builtin_convertvector(whole, Bytes);
      memcpy(q + i, &b, (size_t)room);
      if (SHIFT_WEIGHT) for (int k = 0; k < room; k++) total += (int8_t)q[i + k];
    }
    to->sum[r] = total;
  }
}

// --- one number, and one row, of a matrix -----------------------------------------------------------------------------

static inline int8_t whole_at(const Matrix *W, int32_t i, int32_t o) {
  size_t group = ((size_t)(o / COLUMNS) * (size_t)W->depth / GROUP + (size_t)(i / GROUP)) * COLUMNS + (size_t)(o % COLUMNS);
  return (int8_t)(W->whole[group * GROUP + (size_t)(i % GROUP)] - SHIFT_WEIGHT);
}

// A row of an embedding: a column of the matrix that multiplies with it.
static void look_up(const Matrix *table, int32_t id, float *x) {
  for (int32_t i = 0; i < table->in; i++)
    x[i] = table->values ? table->values[((size_t)(id / COLUMNS) * (size_t)table->in + (size_t)i) * COLUMNS + (size_t)(id % COLUMNS)]
                         : (float)whole_at(table, i, id) * table->scale[id];
}
