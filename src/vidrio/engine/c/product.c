// The product x W + b. Weights are integers from -63 to 63, with one scale per column, and rows are rounded to integers
// from -127 to 127, with one scale per row. The products are exact: the sum of two products fits in 16 bits, so no
// instruction set overflows. A model may also use float32 matrices. Then the terms of each sum are added in order of k.
//
// Columns are stored in blocks of 16. For integers, k is also stored in groups of 4: [out / 16][in / 4][16][4], or
// [out / 16][in / 4][4][16].

enum { COLUMNS = LANES, GROUP = 4, MAX_WEIGHT = 63, MAX_INPUT = 127 };

typedef struct {
  int32_t in, out;   // number of rows and columns
  int32_t depth;     // `in`, padded to a multiple of 4
  int32_t blocks;    // number of blocks of 16 columns
  int8_t *whole;     // packed integers, each plus SHIFT; or
  float *values;     // packed values of a float32 matrix
  float *scale;      // one per column
  const float *bias; // may be NULL
} Matrix;

// Rows prepared for products: either unchanged float32 values, or `depth` integers per row, with a scale and the sum of
// the integers for each row.
typedef struct { const float *x; int8_t *whole; float *scale; int32_t *sum; } Rows;

// --- `dot` adds four products to each column, with a version for each instruction set --------------------------------
// The last version defines the result. A Part contains as many of a block's 16 columns as one instruction processes. If
// the instruction requires unsigned numbers, weights are stored as w + 64 (SHIFT), and 64 * sum(x) is subtracted
// afterwards. Tiles have TALL rows by WIDE blocks, or a single row by ALONE blocks.

static inline int32_t four(const int8_t *x) { int32_t bits; memcpy(&bits, x, sizeof bits); return bits; }

#if defined(__AVX512VNNI__)
enum { TALL = 4, WIDE = 4, ALONE = 4, SHIFT = 64, NEXT_K = 1, NEXT_COLUMN = GROUP };
typedef __m512i Part;
static inline Part dot(Part a, const int8_t *x, const int8_t *w) {
  return _mm512_dpbusd_epi32(a, _mm512_loadu_si512(w), _mm512_set1_epi32(four(x)));
}
#elif defined(__AVX2__)
enum { TALL = 4, WIDE = 1, ALONE = 4, SHIFT = 64, NEXT_K = 1, NEXT_COLUMN = GROUP };
typedef __m256i Part;
static inline Part dot(Part a, const int8_t *x, const int8_t *w) {
  __m256i pairs = _mm256_maddubs_epi16(_mm256_loadu_si256((const __m256i *)w), _mm256_set1_epi32(four(x)));
  return _mm256_add_epi32(a, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
#elif defined(__ARM_FEATURE_DOTPROD)
enum { TALL = 4, WIDE = 1, ALONE = 4, SHIFT = 0, NEXT_K = 1, NEXT_COLUMN = GROUP };
typedef int32x4_t Part;
static inline Part dot(Part a, const int8_t *x, const int8_t *w) {
  return vdotq_s32(a, vld1q_s8(w), vreinterpretq_s8_s32(vdupq_n_s32(four(x))));
}
#elif defined(__wasm_relaxed_simd__)
enum { TALL = 2, WIDE = 1, ALONE = 2, SHIFT = 64, NEXT_K = 1, NEXT_COLUMN = GROUP };
typedef v128_t Part;
static inline Part dot(Part a, const int8_t *x, const int8_t *w) { // w + 64 has seven bits, so the instruction's undefined cases cannot occur
  return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(wasm_v128_load32_splat(x), wasm_v128_load(w), a);
}
#else
enum { TALL = 1, WIDE = 1, ALONE = 1, SHIFT = 0, NEXT_K = COLUMNS, NEXT_COLUMN = 1 };
typedef Whole Part;
typedef int8_t Bytes __attribute__((vector_size(COLUMNS)));
typedef int16_t Short __attribute__((vector_size(2 * COLUMNS)));
static inline Part dot(Part a, const int8_t *x, const int8_t *w) {
  Short sum = {0}; // the sum of four products of at most 63 * 127 fits
  for (int k = 0; k < GROUP; k++) {
    Bytes column;
    memcpy(&column, w + k * COLUMNS, sizeof column);
    sum = sum + (int16_t)x[k] * __builtin_convertvector(column, Short);
  }
  return a + __builtin_convertvector(sum, Whole);
}
#endif

enum { PARTS = sizeof(Whole) / sizeof(Part) };

// Return the index of a number in the packed matrix. float32 matrices have the layout of the last version of `dot`, in
// which [in / 4][4][16] is equivalent to [in][16].
static inline size_t place(const Matrix *W, int32_t i, int32_t o) {
  int32_t k = i % GROUP, column = o % COLUMNS, within = W->values ? k * COLUMNS + column : k * NEXT_K + column * NEXT_COLUMN;
  return ((size_t)(o / COLUMNS) * (size_t)W->depth + (size_t)(i - k)) * COLUMNS + (size_t)within;
}

// --- tiles: `tall` rows times `wide` blocks of columns -----------------------------------------------------------------

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

// Compute y = product * (scale of the row * scale of the column) + b. When tracing, `product` receives the integers.
// Complete blocks are written, even if a row ends within the last block.
ALWAYS_INLINE void tile(const int tall, const int wide, const Matrix *W, int32_t block, const Rows *x, int32_t row, float *y, size_t stride,
                        float *product) {
  Part sums[16][PARTS];
  size_t depth = (size_t)W->depth, size = depth * COLUMNS, column = (size_t)block * COLUMNS, to = (size_t)row * stride + column;
  const int8_t *w = W->whole + (size_t)block * size, *q = x->whole + (size_t)row * depth;
  const float *scale = W->scale + column, *bias = W->bias ? W->bias + column : NULL, *scales = x->scale + row;
  const int32_t *sum = x->sum + row;
  memset(sums, 0, sizeof sums);
  for (size_t k = 0; k < depth; k += GROUP)
    UNROLL for (int b = 0; b < wide; b++)
      UNROLL for (int p = 0; p < PARTS; p++)
        UNROLL for (int r = 0; r < tall; r++)
          sums[r * wide + b][p] = dot(sums[r * wide + b][p], q + (size_t)r * depth + k, w + (size_t)b * size + k * COLUMNS + p * (GROUP * COLUMNS / PARTS));
  UNROLL for (int r = 0; r < tall; r++, to += stride)
    UNROLL for (int c = 0; c < wide * COLUMNS; c += COLUMNS) {
      Whole total;
      memcpy(&total, sums[r * wide + c / COLUMNS], sizeof total);
      Lanes raw = __builtin_convertvector(total - SHIFT * sum[r], Lanes), v = raw * (scales[r] * load(scale + c));
      store(y + to + c, bias ? v + load(bias + c) : v);
      if (product) store(product + to + c, raw);
    }
}

// Multiply some rows by all blocks: `wide` blocks at a time, and the remaining blocks one at a time. The last block is
// computed first, and rows are computed in order. Values written beyond the end of a row are therefore overwritten by
// the next row or, after the last row, fall into the padding (`allocate`).
ALWAYS_INLINE void band(const int tall, const int wide, const Matrix *W, const Rows *x, int32_t row, int32_t end, float *y, size_t stride,
                        float *product) {
  int32_t together = W->blocks - W->blocks % wide;
  for (int32_t block = W->blocks - 1; block >= together; block--)
    for (int32_t r = row; r < end; r += tall) tile(tall, 1, W, block, x, r, y, stride, product);
  for (int32_t block = 0; block < together; block += wide)
    for (int32_t r = row; r < end; r += tall) tile(tall, wide, W, (block + together - wide) % together, x, r, y, stride, product);
}

// Compute a tile of `add_product`.
ALWAYS_INLINE void add_tile(const int tall, const int wide, const float *a, size_t a_stride, const float *b, size_t b_step, size_t b_stride, int32_t n,
                            float *y, size_t y_stride, int32_t columns) {
  Lanes sums[4];
  for (int r = 0; r < tall; r++)
    for (int c = 0; c < wide; c++) sums[r * wide + c] = load_some(y + (size_t)r * y_stride + c * LANES, columns - c * LANES);
  for (size_t k = 0; k < (size_t)n; k++)
    UNROLL for (int c = 0; c < wide; c++)
      UNROLL for (int r = 0; r < tall; r++)
        sums[r * wide + c] = sums[r * wide + c] + a[(size_t)r * a_stride + k] * load(b + (size_t)r * b_step + k * b_stride + c * LANES);
  for (int r = 0; r < tall; r++)
    for (int c = 0; c < wide; c++) store_some(y + (size_t)r * y_stride + c * LANES, sums[r * wide + c], columns - c * LANES);
}

// Compute y += a b in float32, adding the terms of each sum in order. a has `rows` rows of n numbers, and b has n rows
// of `columns` numbers, after which a further tile must be readable. Each row of a has its own b, b_step after that of
// the previous row. Independent sums are computed in parallel. If b_step is 0, four rows share b.
static void add_product(const float *a, int32_t a_stride, int32_t rows, const float *b, int32_t b_step, int32_t b_stride, int32_t n, float *y,
                        int32_t y_stride, int32_t columns) {
  size_t r = 0, A = (size_t)a_stride, B = (size_t)b_stride, S = (size_t)b_step, Y = (size_t)y_stride;
  for (; r + 4 <= (size_t)rows; r += 4)
    for (int32_t c = 0; c < columns; c += LANES) {
      const float *of_b = b + r * S + c;
      if (S) add_tile(4, 1, a + r * A, A, of_b, S, B, n, y + r * Y + c, Y, columns - c);
      else add_tile(4, 1, a + r * A, A, of_b, 0, B, n, y + r * Y + c, Y, columns - c);
    }
  for (; r < (size_t)rows; r++)
    for (int32_t c = 0; c < columns; c += 2 * LANES)
      if (columns - c > LANES) add_tile(1, 2, a + r * A, A, b + r * S + c, 0, B, n, y + r * Y + c, Y, columns - c);
      else add_tile(1, 1, a + r * A, A, b + r * S + c, 0, B, n, y + r * Y + c, Y, columns - c);
}

// Compute x W + b for `rows` rows. Rows of y are `stride` apart. `product` is NULL when not tracing.
static __attribute__((noinline)) void linear(const Matrix *W, const Rows *x, int32_t rows, float *y, int32_t stride, float *product) {
  if (W->values) {
    for (int32_t r = 0; r < rows; r++) memset(y + (size_t)r * (size_t)stride, 0, (size_t)W->out * sizeof *y);
    for (int32_t c = 0; c < W->out; c += COLUMNS)
      add_product(x->x, W->in, rows, W->values + (size_t)c * (size_t)W->depth, 0, COLUMNS, W->in, y + c, stride, W->out - c < COLUMNS ? W->out - c : COLUMNS);
    for (int32_t r = 0; W->bias && r < rows; r++)
      for (int32_t o = 0; o < W->out; o++) y[(size_t)r * (size_t)stride + (size_t)o] += W->bias[o];
    return;
  }
  int32_t tall = rows - rows % TALL;
  band(TALL, WIDE, W, x, 0, tall, y, (size_t)stride, product);
  if (tall < rows) band(1, ALONE, W, x, tall, rows, y, (size_t)stride, product);
}

// --- rounding rows to integers ---------------------------------------------------------------------------------------

// Compute scale = max |x| / 127, and whole = x / scale, rounded. Each row has `depth` bytes: d numbers, and then zeros.
static void whole_rows(const float *x, int32_t rows, int32_t d, int32_t depth, Rows *to) {
  typedef int8_t Bytes __attribute__((vector_size(LANES)));
  for (int32_t r = 0; r < rows; r++, x += d) {
    Lanes most = {0};
    for (int32_t i = 0; i < d; i += LANES) most = larger(absolute(load_some(x + i, d - i)), most);
    float top = largest_of(most), scale = top >= 0x1p-100f ? top / MAX_INPUT : 1.0f, inverse = 1.0f / scale;
    int8_t *whole = to->whole + (size_t)r * (size_t)depth;
    Whole total = {0};
    for (int32_t i = 0; i < depth; i += LANES) {
      Bytes bytes = __builtin_convertvector((Whole)((Bits)(load_some(x + i, d - i) * inverse + ROUNDS) - ROUNDS_BITS), Bytes);
      if (depth - i >= LANES) memcpy(whole + i, &bytes, sizeof bytes);
      else memcpy(whole + i, &bytes, (size_t)(depth - i));
      total = total + __builtin_convertvector(bytes, Whole);
    }
    to->scale[r] = scale;
    to->sum[r] = 0;
    for (int k = 0; k < LANES; k++) to->sum[r] += total[k];
  }
}

// Look up a row of an embedding, which is a column of the matrix.
static void look_up(const Matrix *W, int32_t id, float *x) {
  for (int32_t i = 0; i < W->in; i++) x[i] = W->values ? W->values[place(W, i, id)] : (float)(W->whole[place(W, i, id)] - SHIFT) * W->scale[id];
}
