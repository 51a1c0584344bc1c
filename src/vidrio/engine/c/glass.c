// The matrix products of glass/engine.py, bit for bit, for a browser, where NumPy has no BLAS.
#include <stdint.h>
#include <wasm_simd128.h>

enum { TALL = 4, WIDE = 8 }; // rows and columns per tile; both matrices are padded to multiples of these

// The exact integer product x[rows][depth] w. w is stored in pairs of k: [depth / 2][columns][2].
void whole_product(const int16_t *x, const int8_t *w, int32_t rows, int32_t depth, int32_t columns, float *out) {
  for (int32_t r = 0; r < rows; r += TALL)
    for (int32_t c = 0; c < columns; c += WIDE) {
      v128_t low[TALL], high[TALL];
      for (int i = 0; i < TALL; i++) low[i] = high[i] = wasm_i32x4_splat(0);
      for (int32_t k = 0; k < depth; k += 2) {
        v128_t eight = wasm_v128_load(w + (int64_t)k * columns + 2 * c);
        v128_t first = wasm_i16x8_extend_low_i8x16(eight), second = wasm_i16x8_extend_high_i8x16(eight);
        for (int i = 0; i < TALL; i++) {
          v128_t pair = wasm_v128_load32_splat(x + (int64_t)(r + i) * depth + k);
          low[i] = wasm_i32x4_add(low[i], wasm_i32x4_dot_i16x8(pair, first));
          high[i] = wasm_i32x4_add(high[i], wasm_i32x4_dot_i16x8(pair, second));
        }
      }
      for (int i = 0; i < TALL; i++) {
        float *to = out + (int64_t)(r + i) * columns + c;
        wasm_v128_store(to, wasm_f32x4_convert_i32x4(low[i]));
        wasm_v128_store(to + 4, wasm_f32x4_convert_i32x4(high[i]));
      }
    }
}

// The float32 product. The terms of each sum are added in order, starting from 0.
void in_order(const float *a, const float *b, int32_t rows, int32_t depth, int32_t columns, float *out) {
  for (int32_t r = 0; r < rows; r++)
    for (int32_t c = 0; c < columns; c += WIDE) {
      v128_t low = wasm_f32x4_splat(0), high = low;
      for (int32_t k = 0; k < depth; k++) {
        v128_t x = wasm_v128_load32_splat(a + (int64_t)r * depth + k);
        const float *row = b + (int64_t)k * columns + c;
        low = wasm_f32x4_add(low, wasm_f32x4_mul(x, wasm_v128_load(row)));
        high = wasm_f32x4_add(high, wasm_f32x4_mul(x, wasm_v128_load(row + 4)));
      }
      float *to = out + (int64_t)r * columns + c;
      wasm_v128_store(to, low);
      wasm_v128_store(to + 4, high);
    }
}
