// A model ready to run. Its parameters, in the order of model/parameters.py, are packed for products. Everything in a
// file is checked here, before memory is allocated and before any other code uses it.

typedef struct { const float *gain, *bias; } Norm;
typedef struct { Matrix Q, K, V, O; Norm norm; } Attention;
typedef struct { Matrix W1, W2; Norm norm; } FeedForward;
typedef struct { Matrix W, Wf; Norm norm; } Recurrence;
typedef struct { Attention self, cross; Recurrence ssru; FeedForward ffn; } Layer; // self or ssru; each sub-layer has its own norm
typedef struct { Matrix table; const float *positions; Layer *layers; Norm norm; } Stack; // `norm`: of a pre-norm model

typedef struct Model {
  int32_t size[N_SIZES];
  float embedding_scale, score_divisor, epsilon;
  Stack encoder, decoder; // the embeddings have one column per token
  Matrix out;             // the target embedding, if it is tied (§3.4)
} Model;

static _Thread_local char problem[80];
const char *model_problem(void) { return problem; } // why this thread's last call failed; empty if it was rejected

static int refuse(const char *why) {
  if (!*problem) snprintf(problem, sizeof problem, "%s", why);
  return 0;
}

// --- memory -----------------------------------------------------------------------------------------------------------

// Every allocation has an owner (a model, a search, a record, or a call) and is freed with its owner, so a call that
// runs out of memory leaves nothing behind. Allocations are aligned to 64 bytes and followed by 64 bytes of padding,
// which vectors may read and overwrite. The Block before an allocation links it to the owner's other allocations.
typedef struct Block { struct Block *next, *previous; void *given; } Block; // `given` is the pointer returned by malloc

static _Thread_local void *owner; // the owner of this thread's allocations; if NULL, each allocation is its own owner

// Functions that the host calls set the owner and handle running out of memory with `if (RAN_OUT) return NULL;`. In
// WebAssembly, which has no longjmp, running out of memory is a trap, after which the host drops the instance.
#ifdef __wasm__
#define RAN_OUT 0
_Noreturn static void run_out(void) { __builtin_trap(); }
#else
#define RAN_OUT setjmp(ran_out)
static _Thread_local jmp_buf ran_out;
_Noreturn static void run_out(void) {
  refuse("no memory is left");
  longjmp(ran_out, 1);
}
#endif

static Block *block_of(void *p) { return (Block *)((uint8_t *)p - 64); }

static void unlink_block(Block *block) {
  block->previous->next = block->next;
  block->next->previous = block->previous;
  block->next = block->previous = block;
}

// The size is computed in 64 bits, even if pointers have 32 bits.
static void *allocate(uint64_t count, uint64_t size) {
  uint64_t bytes = count * size + 192;
  uint8_t *given = bytes <= SIZE_MAX / 2 ? malloc((size_t)bytes) : NULL;
  if (!given) run_out();
  Block *block = (Block *)(((uintptr_t)given + 63) / 64 * 64);
  *block = (Block){block, block, given};
  if (!owner) return (uint8_t *)block + 64;
  Block *first = block_of(owner);
  block->next = first->next, block->previous = first;
  first->next->previous = block, first->next = block;
  return (uint8_t *)block + 64;
}

static void *allocate_zeroed(uint64_t count, uint64_t size) {
  void *p = allocate(count, size);
  return memset(p, 0, (size_t)(count * size) + 64);
}

void release(void *p) {
  if (!p) return;
  unlink_block(block_of(p));
  free(block_of(p)->given);
}

static void release_owned(void *p) {
  for (Block *own = block_of(p); own->next != own;) release((uint8_t *)own->next + 64);
}

static void release_all(void *p) {
  if (p) release_owned(p);
  release(p);
}

// Allocate a zeroed owner for all subsequent allocations of this thread. Returns NULL if memory runs out.
static void *new_owner(size_t bytes) {
  *problem = 0, owner = NULL;
  if (RAN_OUT) return NULL;
  return owner = allocate_zeroed(1, bytes);
}

// Return a list with capacity for n items. If the list is too small, the capacity is at least doubled.
static void *grow(void *list, int64_t n, int32_t *room, size_t size) {
  if (n <= *room) return list;
  if (n > INT32_MAX) run_out();
  int64_t twice = 2 * (int64_t)*room, more = n > twice ? n : twice < INT32_MAX ? twice : INT32_MAX;
  void *grown = allocate((uint64_t)more, size);
  if (*room) memcpy(grown, list, (size_t)*room * size);
  release(list);
  *room = (int32_t)more;
  return grown;
}

static void *copy_of(const void *from, uint64_t count, size_t size) {
  void *to = allocate(count, size);
  return count ? memcpy(to, from, (size_t)count * size) : to;
}

void model_free(Model *m) { release_all(m); }

// --- reading ----------------------------------------------------------------------------------------------------------

typedef struct { Model *model; const Tensor *tensors; const uint8_t *data; int64_t n_bytes, packed; int32_t n_tensors, next; } Reader;

enum { FLOAT32, INT8 };

// Return the next tensor, if the file contains this many numbers for it and, for integers, a scale for each of `scales`
// columns.
static const Tensor *next_tensor(Reader *r, int64_t numbers, int64_t scales) {
  if (r->next >= r->n_tensors) return refuse("there are fewer parameters than the config says"), NULL;
  const Tensor *t = &r->tensors[r->next++];
  int64_t size = t->type == INT8 ? 1 : 4;
  if (t->type != FLOAT32 && !(t->type == INT8 && scales)) return refuse("a parameter has a type that is not read"), NULL;
  if (t->offset < 0 || t->offset > r->n_bytes || numbers > (r->n_bytes - t->offset) / size)
    return refuse("a parameter lies outside the file"), NULL;
  if (t->type == INT8 && (t->scale < 0 || t->scale > r->n_bytes || scales > (r->n_bytes - t->scale) / 4))
    return refuse("a scale lies outside the file"), NULL;
  return t;
}

static const float *read_vector(Reader *r, int32_t n) {
  const Tensor *t = next_tensor(r, n, 0);
  if (!t) return NULL;
  float *values = allocate_zeroed((uint64_t)in_lanes(n), sizeof *values);
  return memcpy(values, r->data + t->offset, (size_t)n * sizeof *values);
}

static Norm read_norm(Reader *r) {
  const float *gain = read_vector(r, r->model->size[D_MODEL]);
  return (Norm){gain, read_vector(r, r->model->size[D_MODEL])};
}

// Read a matrix with `in` rows and `out` columns. The file stores `head` columns together: [out / head][in][head]. An
// embedding stores each column separately, i.e. `head` is 1. Vector lanes correspond to the columns of a block.
static Matrix read_matrix(Reader *r, int32_t in, int32_t out, int32_t head, int has_bias) {
  Matrix W = {.in = in, .out = out, .depth = (in + GROUP - 1) / GROUP * GROUP, .blocks = (out + COLUMNS - 1) / COLUMNS};
  const Tensor *t = next_tensor(r, (int64_t)in * out, out);
  if (!t) return W;
  uint64_t columns = (uint64_t)W.blocks * COLUMNS, block_size = (uint64_t)W.depth * COLUMNS;
  int is_whole = r->model->size[WHOLE_NUMBERS], is_stored_whole = t->type == INT8;
  // Narrow matrices are padded. A file with many of them must not take many times its size in memory.
  r->packed += (int64_t)columns * W.depth * (is_whole ? 1 : 4);
  if (r->packed > 8 * r->n_bytes + (64 << 20)) return refuse("its matrices are too narrow for their number"), W;
  const uint8_t *stored = r->data + t->offset;
  int keep = is_whole && is_stored_whole; // integers of at most 63 are used unchanged
  for (int64_t n = 0; keep && n < (int64_t)in * out; n++) keep = abs((int8_t)stored[n]) <= MAX_WEIGHT;
  W.scale = allocate_zeroed(columns, sizeof *W.scale);
  if (is_stored_whole) memcpy(W.scale, r->data + t->scale, (size_t)out * sizeof *W.scale);
  if (is_whole) W.whole = allocate_zeroed(columns, (uint64_t)W.depth);
  else W.values = allocate_zeroed(columns * (uint64_t)W.depth, sizeof *W.values);
  float *values = is_whole ? allocate_zeroed(block_size, sizeof *values) : W.values;
  for (int32_t first = 0; first < out; first += COLUMNS, values += is_whole ? 0 : block_size) {
    int32_t n = out - first < COLUMNS ? out - first : COLUMNS;
    Lanes scale = load(W.scale + first), most = {0};
    Bits fits = (Bits)(absolute(scale * MAX_WEIGHT) <= 3.4e38f);
    size_t at[COLUMNS], size = is_stored_whole ? 1 : sizeof(float); // bytes
    for (int32_t c = 0, o = first; c < n; c++, o++) at[c] = size * ((size_t)(o / head) * (size_t)in * (size_t)head + (size_t)(o % head));
    for (int32_t i = 0; i < in; i++) {
      const uint8_t *from = stored + size * (size_t)i * (size_t)head;
      float row[COLUMNS] = {0};
      for (int32_t c = 0; c < n; c++)
        if (is_stored_whole) row[c] = (float)(int8_t)from[at[c]];
        else memcpy(&row[c], from + at[c], sizeof *row);
      Lanes x = is_stored_whole && !keep ? load(row) * scale : load(row);
      store(values + (size_t)i * COLUMNS, x);
      most = larger(absolute(x), most);
      fits &= (Bits)(absolute(x) <= 3.4e38f);
    }
    if (is_whole && !keep) store(W.scale + first, scale = choose((Bits)(most > 0.0f), most, all(1.0f)) / MAX_WEIGHT);
    for (int32_t i = 0; is_whole && i < in; i++) {
      Lanes whole = (load(values + (size_t)i * COLUMNS) / (keep ? all(1.0f) : scale) + ROUNDS) - ROUNDS;
      fits &= (Bits)(absolute(whole) <= (float)MAX_WEIGHT); // true unless a scale is 0
      Whole shifted = __builtin_convertvector(choose(fits, whole, (Lanes){0}), Whole) + SHIFT;
      int8_t *to = W.whole + place(&W, i, first);
      for (int32_t c = 0; c < n; c++) to[c * NEXT_COLUMN] = (int8_t)shifted[c];
    }
    for (int c = 0; c < COLUMNS; c++)
      if (!fits[c]) refuse("a parameter is not a finite number, or its scale vanishes");
  }
  if (is_whole) release(values);
  if (has_bias) W.bias = read_vector(r, out);
  return W;
}

// Build a matrix from selected columns of another matrix.
static Matrix some_columns(const Matrix *W, const int32_t *columns, int32_t n) {
  Matrix some = {.in = W->in, .out = n, .depth = W->depth, .blocks = (n + COLUMNS - 1) / COLUMNS};
  uint64_t room = (uint64_t)some.blocks * COLUMNS;
  float *bias = W->bias ? allocate_zeroed(room, sizeof *bias) : NULL;
  some.scale = allocate_zeroed(room, sizeof *some.scale), some.bias = bias;
  if (W->whole) some.whole = allocate_zeroed(room, (uint64_t)W->depth);
  else some.values = allocate_zeroed(room * (uint64_t)W->depth, sizeof *some.values);
  for (int32_t o = 0; o < n; o++) {
    int32_t from = columns[o];
    some.scale[o] = W->scale[from];
    if (bias) bias[o] = W->bias[from];
    int32_t together = NEXT_K == 1 && W->whole ? GROUP : 1; // adjacent numbers in a column
    for (int32_t i = 0; i < W->depth; i += together)
      if (W->values) some.values[place(&some, i, o)] = W->values[place(W, i, from)];
      else memcpy(some.whole + place(&some, i, o), W->whole + place(W, i, from), (size_t)together);
  }
  return some;
}

static void release_matrix(Matrix *W) {
  release((float *)W->bias), release(W->scale), release(W->whole), release(W->values), release(W);
}

static Attention read_attention(Reader *r) {
  const int32_t *c = r->model->size, d = c[D_MODEL], e = c[N_HEADS] * c[D_HEAD];
  Attention a;
  a.Q = read_matrix(r, d, e, c[D_HEAD], c[ATTENTION_BIAS]);
  a.K = read_matrix(r, d, e, c[D_HEAD], c[ATTENTION_BIAS]);
  a.V = read_matrix(r, d, e, c[D_HEAD], c[ATTENTION_BIAS]);
  a.O = read_matrix(r, e, d, d, c[ATTENTION_BIAS]);
  a.norm = read_norm(r);
  return a;
}

static Recurrence read_recurrence(Reader *r) {
  int32_t d = r->model->size[D_MODEL];
  Recurrence a;
  a.W = read_matrix(r, d, d, d, 0);
  a.Wf = read_matrix(r, d, d, d, 1);
  a.norm = read_norm(r);
  return a;
}

static void read_layers(Reader *r, Stack *stack, int32_t n_layers, int is_recurrent, int has_cross) {
  int32_t d = r->model->size[D_MODEL], f = r->model->size[D_FF];
  stack->layers = allocate_zeroed((uint64_t)n_layers, sizeof(Layer));
  for (Layer *layer = stack->layers; layer < stack->layers + n_layers && !*problem; layer++) {
    if (is_recurrent) layer->ssru = read_recurrence(r);
    else layer->self = read_attention(r);
    if (has_cross) layer->cross = read_attention(r);
    layer->ffn.W1 = read_matrix(r, d, f, f, 1);
    layer->ffn.W2 = read_matrix(r, f, d, d, 1);
    layer->ffn.norm = read_norm(r);
  }
  if (r->model->size[NORM]) stack->norm = read_norm(r);
}

static const float *read_positions(Reader *r) {
  const int32_t *c = r->model->size;
  int64_t numbers = (int64_t)c[MAX_POSITIONS] * c[D_MODEL];
  if (numbers > (c[POSITIONS] == 3 ? INT32_MAX / 4 : 1 << 23)) return refuse("the table of positions is too large"), NULL;
  if (c[POSITIONS] == 3) return read_vector(r, (int32_t)numbers);
  float *table = allocate_zeroed((uint64_t)numbers, sizeof *table);
  if (c[POSITIONS] < 3) sinusoidal(c[POSITIONS], c[MAX_POSITIONS], c[D_MODEL], table);
  return table;
}

static int has_encoder(const Model *m) { return m->size[SHAPE] != 2; }
static int has_decoder(const Model *m) { return m->size[SHAPE] != 1; }

static int check_sizes(const int32_t *c) {
  static const int32_t limits[N_SIZES][2] = {
      [SHAPE] = {0, 2}, [SOURCE_VOCABULARY] = {0, 1 << 24}, [TARGET_VOCABULARY] = {0, 1 << 24}, [D_MODEL] = {1, 1 << 16}, [N_HEADS] = {1, 1 << 12},
      [D_HEAD] = {1, 1 << 16}, [D_FF] = {1, 1 << 16}, [N_ENCODER_LAYERS] = {0, 1000}, [N_DECODER_LAYERS] = {0, 1000}, [N_CLASSES] = {0, 1 << 24},
      [MAX_POSITIONS] = {1, 1 << 20}, [NORM] = {0, 1}, [NORM_EPSILON] = {0, INT32_MAX}, [ACTIVATION] = {0, 2}, [POSITIONS] = {0, 4}, [TYING] = {0, 2},
      [SCALE_EMBEDDINGS] = {0, 1}, [ATTENTION_BIAS] = {0, 1}, [OUTPUT_BIAS] = {0, 1}, [START] = {-1, 1 << 24}, [END] = {-1, 1 << 24},
      [DECODER_CELL] = {0, 1}, [WHOLE_NUMBERS] = {0, 1}};
  for (int n = 0; n < N_SIZES; n++)
    if (c[n] < limits[n][0] || c[n] > limits[n][1]) return refuse("a size is out of its limits");
  int fits = (int64_t)c[N_HEADS] * c[D_HEAD] <= 1 << 16;
  fits &= c[SHAPE] == 2 || (c[SOURCE_VOCABULARY] && c[N_ENCODER_LAYERS]);
  fits &= c[SHAPE] == 1 ? c[N_CLASSES] > 0 : c[N_DECODER_LAYERS] && c[START] < c[TARGET_VOCABULARY] && c[END] < c[TARGET_VOCABULARY];
  fits &= c[POSITIONS] > 2 || (c[D_MODEL] % 2 == 0 && (c[POSITIONS] < 2 || c[D_MODEL] > 2)); // sine and cosine come in pairs
  fits &= c[SHAPE] || c[TYING] || c[SOURCE_VOCABULARY] == c[TARGET_VOCABULARY];
  return fits || refuse("its sizes do not go together");
}

Model *model_load(const int32_t *sizes, const Tensor *tensors, int32_t n_tensors, const uint8_t *data, size_t n_bytes) {
  Model *m = new_owner(sizeof *m);
  if (!m) return NULL;
  if (RAN_OUT) return model_free(m), NULL;
  if (!check_sizes(sizes)) return model_free(m), NULL;
  Reader *r = &(Reader){.model = m, .tensors = tensors, .n_tensors = n_tensors, .data = data, .n_bytes = (int64_t)n_bytes};
  memcpy(m->size, sizes, sizeof m->size);
  const int32_t *c = m->size, d = c[D_MODEL], words = c[TARGET_VOCABULARY];
  m->embedding_scale = c[SCALE_EMBEDDINGS] ? sqrtf((float)d) : 1.0f;
  m->score_divisor = sqrtf((float)c[D_HEAD]);
  memcpy(&m->epsilon, &c[NORM_EPSILON], sizeof m->epsilon);
  if (has_encoder(m)) m->encoder.table = read_matrix(r, d, c[SOURCE_VOCABULARY], 1, 0);
  if (has_decoder(m)) m->decoder.table = has_encoder(m) && !c[TYING] ? m->encoder.table : read_matrix(r, d, words, 1, 0);
  if (has_encoder(m)) m->encoder.positions = read_positions(r);
  if (has_decoder(m)) m->decoder.positions = c[POSITIONS] != 3 && has_encoder(m) ? m->encoder.positions : read_positions(r);
  if (has_encoder(m) && !*problem) read_layers(r, &m->encoder, c[N_ENCODER_LAYERS], 0, 0);
  if (has_decoder(m) && !*problem) read_layers(r, &m->decoder, c[N_DECODER_LAYERS], c[DECODER_CELL], has_encoder(m));
  if (!has_decoder(m)) m->out = read_matrix(r, d, c[N_CLASSES], c[N_CLASSES], 1);
  else m->out = c[TYING] == 2 ? read_matrix(r, d, words, words, 0) : m->decoder.table;
  if (has_decoder(m) && c[OUTPUT_BIAS]) m->out.bias = read_vector(r, words);
  if (!*problem && r->next != n_tensors) refuse("there are more parameters than the config says");
  if (*problem) return model_free(m), NULL;
  return m;
}
