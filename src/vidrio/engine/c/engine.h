// What a host (Python, a browser) calls. Every pointer is into memory the engine can reach: its own when it runs as
// WebAssembly (`malloc` is exported), the process's when it is native code. Nothing here is checked twice: sizes and
// offsets are validated once, in model_load and search_add; a host never passes a pointer that came from a file.
#pragma once
#include <stdint.h>

typedef struct Model Model;
typedef struct Search Search;
typedef struct Sentence Sentence; // of a search
typedef struct Record Record;

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
  SCALE_EMBEDDINGS, ATTENTION_BIAS, OUTPUT_BIAS, START, END,
  WHOLE_NUMBERS, // 1: matrices multiply as integers (seven bits); 0: as float32
  N_SIZES
};

// One of the parameters, in the order of model/parameters.py.
typedef struct { int64_t type, offset, scale; } Tensor; // type: 0 float32, 1 int8 with float32 scales; places in `data`

typedef struct {
  int32_t beam, n_best, min_length, max_length, no_repeat_ngram, top_k, sampling;
  uint32_t seed;
  float length_penalty, temperature, top_p;
} Options;

Model *model_load(const int32_t *sizes, const Tensor *tensors, int32_t n_tensors, const uint8_t *data, int64_t n_bytes);
const char *model_problem(void); // why the last model_load returned NULL
void model_free(Model *);

// A search translates any number of sentences side by side; `rows` hypotheses go through the decoder together, and the
// next sentence begins as soon as there is room. No result depends on the others.
Search *search_new(const Model *, int32_t rows);
Sentence *search_add(Search *, const Options *, const int32_t *source, int32_t n_source, const int32_t *prefix,
                     int32_t n_prefix, const int32_t *suppressed, int32_t n_suppressed); // NULL: refused
int32_t search_run(Search *, int32_t steps);   // at most so many; how many sentences are unfinished
Sentence *search_next(const Search *);         // one that is done and not dropped yet, or NULL
int32_t sentence_count(const Sentence *);      // hypotheses found, best first; -1: unfinished
int32_t sentence_length(const Sentence *, int32_t nth); // tokens, the end token included if it ended
int32_t sentence_written(const Sentence *, int32_t *ids, int32_t room); // while it is unfinished: the leader so far
// ids[length], log_probs[length], attention[length * n_source] (each may be NULL); total[2]: log p and score
int32_t sentence_read(const Sentence *, int32_t nth, int32_t *ids, float *log_probs, float *attention,
                      double *total); // 1: it ended, 0: it was cut at max_length
void search_drop(Search *, Sentence *); // finished or not
void search_free(Search *);

// Forced decoding: all target rows at once. log_probs[n_target + 1], the end token last; attention likewise.
int32_t forced(const Model *, Record *, const int32_t *source, int32_t n_source, const int32_t *target, int32_t n_target,
               float *log_probs, float *attention);
int32_t classify(const Model *, Record *, const int32_t *source, int32_t n_source, float *probabilities);

// Every quantity of a forced pass by its address (enc.0.self.Q.h1), as it was in the engine's memory.
Record *record_new(void);
int32_t record_count(const Record *);
const char *record_address(const Record *, int32_t nth);
int32_t record_rows(const Record *, int32_t nth);
int32_t record_columns(const Record *, int32_t nth); // 0: a vector of `rows` numbers
const float *record_values(const Record *, int32_t nth);
void record_free(Record *);
