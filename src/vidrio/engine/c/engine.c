// The engine: an implementation of glass/walk.py for fast translation, in the same order and with the same names. All
// files are compiled as one unit, and follow the structure of the paper. Results are bit-for-bit identical on every
// processor (docs/engine.md).
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
