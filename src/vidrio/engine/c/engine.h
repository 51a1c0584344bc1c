// What the host (Python, a browser) passes: sizes, positions, options. Its functions are those that are not static.
// Every pointer is into memory that the engine can access: its own as WebAssembly (`malloc` is exported), the process's
// as machine code. Sizes and offsets are checked once, in model_load and search_add; a host never passes a pointer from
// a file.
#pragma once
#include <stdint.h>

// The sizes and choices of a model (model/config.py), in this order.
enum {
  SHAPE,        // 0 encoder-decoder, 1 encoder, 2 decoder
  SOURCE_VOCABULARY, TARGET_VOCABULARY, D_MODEL, N_HEADS, D_HEAD, D_FF, N_ENCODER_LAYERS, N_DECODER_LAYERS, N_CLASSES,
  MAX_POSITIONS,
  NORM,         // 0 post, 1 pre
  NORM_EPSILON, // the bits of a float32
  ACTIVATION,   // 0 relu, 1 gelu, 2 swish
  POSITIONS,    // 0 sinusoidal, 1 sinusoidal-halves, 2 sinusoidal-marian, 3 learned, 4 none
  TYING,        // 0 all, 1 output, 2 none
  SCALE_EMBEDDINGS, ATTENTION_BIAS, OUTPUT_BIAS,
  START,        // -1: the decoder starts with a zero vector
  END,
  DECODER_CELL, // 0 attention, 1 ssru
  WHOLE_NUMBERS, // 1: matrices multiply in int8 (seven bits); 0: in float32
  N_SIZES
};

// One of the parameters, in the order of model/parameters.py.
typedef struct { int64_t type, offset, scale; } Tensor; // type: 0 float32, 1 int8 with float32 scales; positions in `data`

typedef struct {
  int32_t beam, n_best, min_length, max_length, no_repeat_ngram, top_k, sampling;
  uint32_t seed;
  float length_penalty, temperature, top_p;
} Options;
