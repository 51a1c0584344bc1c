// The engine: what glass/walk.py does, in the same order and with the same names, for translating. It is compiled as
// one unit; the files follow the paper. It computes the same bits on every processor (docs/engine.md).
#include "engine.h"

#include <math.h>
#ifndef __wasm__
#include <setjmp.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "maths.c"
#include "product.c"
#include "positions.c"
#include "model.c"
#include "record.c"
#include "interventions.c"
#include "attention.c"
#include "transformer.c"
#include "search.c"
#include "forced.c"
