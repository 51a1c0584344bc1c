// The position table (§3.5): row p is added to the embedding of the token at position p. The results of a C library's
// sin, cos and pow differ in the last bit between processors, so these functions are implemented here, in float64 and
// with only + - * /.

static double rounded(double x) { return (x + 6755399441055744.0) - 6755399441055744.0; }

// 1 / n!
static double inverse_factorial(int n) {
  double product = 1.0;
  for (int k = 2; k <= n; k++) product = product * k;
  return 1.0 / product;
}

// Compute e^x as 2^n e^r, for 0 <= x < 10.
static double exp_double(double x) {
  double n = rounded(x * 1.4426950408889634);
  double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  double y = inverse_factorial(13);
  for (int k = 12; k >= 0; k--) y = y * r + inverse_factorial(k);
  for (int k = 0; k < (int)n; k++) y = y * 2.0;
  return y;
}

// Compute sin a and cos a for 0 <= a < 2^20, from the remainder of a after quarter turns, by their series.
static void sin_cos(double a, double *sine, double *cosine) {
  double k = rounded(a * 0.6366197723675814);
  double r = ((a - k * 1.57079632673412561417e+00) - k * 6.07710050630396597660e-11) - k * 2.02226624879595063154e-21;
  double z = r * r, s = inverse_factorial(17), c = inverse_factorial(16);
  for (int n = 15, sign = -1; n >= 3; n -= 2, sign = -sign) s = s * z + sign * inverse_factorial(n);
  for (int n = 14, sign = -1; n >= 2; n -= 2, sign = -sign) c = c * z + sign * inverse_factorial(n);
  s = r + (r * z) * s;
  c = 1.0 + z * c;
  int quarter = (int)k % 4;
  *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
  *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}

// kind: 0 alternates sine and cosine; 1 has all sines first; 2 does, too, with D - 2 instead of D, as in Marian.
static void sinusoidal(int kind, int32_t n_positions, int32_t d, float *table) {
  for (int32_t i = 0; i < d / 2; i++) {
    double scale = exp_double((double)(2 * i) / (double)(kind == 2 ? d - 2 : d) * 9.210340371976184); // 10000^(2i/D)
    for (int32_t p = 0; p < n_positions; p++) {
      double sine, cosine;
      sin_cos((double)p / scale, &sine, &cosine);
      float *row = table + (size_t)p * (size_t)d;
      row[kind == 0 ? 2 * i : i] = (float)sine;
      row[kind == 0 ? 2 * i + 1 : d / 2 + i] = (float)cosine;
    }
  }
}
