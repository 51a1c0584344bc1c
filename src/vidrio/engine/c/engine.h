// The interface to the host (Python or a browser): sizes, positions and options. The host calls all functions that are
// not static. All pointers are to memory that the engine can access: as WebAssembly, its own memory (`malloc` is
// exported), and as native code, the memory of the process. Sizes and offsets are checked once, in model_load and
// search_add. A host never passes pointers that were read from a file.
#pragma once
#include <stdint.h>

// The sizes and options of a model (model/config.py), in this order.
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
  START,        // -1: the decoder starts from a zero vector
  END,
  DECODER_CELL, // 0 attention, 1 ssru
  WHOLE_NUMBERS, // 1: products are computed in int8 (seven bits); 0: in float32
  N_SIZES
};

// A parameter, in the order of model/parameters.py. The type is 0 for float32, and 1 for int8 with float32 scales.
// `offset` and `scale` are positions in `data`.
typedef struct { int64_t type, offset, scale; } Tensor;

typedef struct {
  int32_t beam, n_best, min_length, max_length, no_repeat_ngram, top_k, sampling;
  uint32_t seed;
  float length_penalty, temperature, top_p;
} Options;
