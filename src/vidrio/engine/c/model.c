// A model made ready to run: its parameters, in the order of model/parameters.py, packed for products. Everything that a
// file says is held to its limits here, before memory is taken and before anything else reads it.

typedef struct { const float *gain, *bias; } Norm;
typedef struct { Matrix Q, K, V, O; Norm norm; } Attention;
typedef struct { Matrix W1, W2; Norm norm; } FeedForward;
typedef struct { Attention self, cross; FeedForward ffn; } Layer; // each sub-layer owns its norm

struct Model {
  int32_t size[N_SIZES];
  float embedding_scale, score_divisor, epsilon;
  Matrix source, target, out; // tables of embeddings, a column a token; `out` is `target` where they are tied (§3.4)
  const float *source_positions, *target_positions;
  Layer *encoder, *decoder;
  Norm encoder_norm, decoder_norm; // of a pre-norm model
  struct Piece { struct Piece *next; } *memory;
};

static const char *problem = "";
const char *model_problem(void) { return problem; }

// --- memory -----------------------------------------------------------------------------------------------------------

// Zeros, at an address that vectors like. There is no going on without memory: the host sees a trap, nothing is corrupted.
static void *need(size_t bytes) {
  void *p = NULL;
  bytes = (bytes + 127) / 64 * 64;
#if defined(_WIN32)
  p = _aligned_malloc(bytes, 64);
#else
  if (posix_memalign(&p, 64, bytes)) p = NULL;
#endif
  if (!p) __builtin_trap();
  return memset(p, 0, bytes);
}

static void let_go(void *p) {
#if defined(_WIN32)
  _aligned_free(p);
#else
  free(p);
#endif
}

// A list with room for n: where that is more than it has, one of at least twice the room, the new part zeros.
static void *with_room(void *list, int32_t n, int32_t *room, size_t size) {
  if (n <= *room) return list;
  int32_t before = *room;
  *room = n > 2 * before ? n : 2 * before;
  void *grown = need((size_t)*room * size);
  if (before) memcpy(grown, list, (size_t)before * size);
  let_go(list);
  return grown;
}

static void *copy_of(const void *from, size_t bytes) {
  void *to = need(bytes);
  return bytes ? memcpy(to, from, bytes) : to;
}

// Memory that lives as long as the model.
static void *of_model(Model *m, size_t bytes) {
  struct Piece *piece = need(bytes + 64);
  piece->next = m->memory;
  m->memory = piece;
  return (uint8_t *)piece + 64;
}

void model_free(Model *m) {
  while (m && m->memory) {
    struct Piece *piece = m->memory;
    m->memory = piece->next;
    let_go(piece);
  }
  let_go(m);
}

// --- reading ----------------------------------------------------------------------------------------------------------

typedef struct {
  Model *model;
  const Tensor *tensors;
  int32_t n_tensors, next;
  const uint8_t *data;
  int64_t n_bytes, packed;
} Reader;

enum { FLOAT32, INT8 };
enum { PLAIN, TABLE }; // how a matrix lies in the file: [in][out] (of each head by itself), or [out][in]

static int refuse(const char *why) {
  if (!*problem) problem = why;
  return 0;
}

// The next tensor, if the file holds as many numbers for it; integers need a scale for each of `scales` columns.
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

static float float_at(const Reader *r, int64_t offset, int64_t nth) {
  float value;
  memcpy(&value, r->data + offset + 4 * nth, sizeof value);
  return value;
}

static const float *read_vector(Reader *r, int32_t n) {
  const Tensor *t = next_tensor(r, n, 0);
  if (!t) return NULL;
  float *values = of_model(r->model, (size_t)in_lanes(n) * sizeof *values);
  memcpy(values, r->data + t->offset, (size_t)n * sizeof *values);
  return values;
}

static Norm read_norm(Reader *r) {
  int32_t d = r->model->size[D_MODEL];
  const float *gain = read_vector(r, d);
  return (Norm){gain, read_vector(r, d)};
}

// A matrix of `in` rows and `out` columns; `head` columns lie together in the file ([out / head][in][head]).
static Matrix read_matrix(Reader *r, int32_t in, int32_t out, int32_t head, int layout) {
  Matrix W = {.in = in, .out = out, .depth = (in + GROUP - 1) / GROUP * GROUP, .blocks = (out + COLUMNS - 1) / COLUMNS};
  const Tensor *t = next_tensor(r, (int64_t)in * out, out);
  if (!t) return W;
  const uint8_t *stored = r->data + t->offset;
  size_t columns = (size_t)W.blocks * COLUMNS;
  // Narrow matrices are filled up; a file of nothing else shall not take many times its size.
  r->packed += (int64_t)columns * W.depth * (r->model->size[WHOLE_NUMBERS] ? 1 : 4);
  if (r->packed > 8 * r->n_bytes + (64 << 20)) return refuse("its matrices are too narrow for their number"), W;
  int64_t across = layout == TABLE ? 1 : head; // how far apart two numbers of a column lie
  W.scale = of_model(r->model, columns * sizeof *W.scale);
  if (r->model->size[WHOLE_NUMBERS]) {
    W.whole = of_model(r->model, columns * (size_t)W.depth);
    W.sum = of_model(r->model, columns * sizeof *W.sum);
  } else
    W.values = of_model(r->model, columns * (size_t)in * sizeof *W.values);
  // Integers of at most 63 are taken as they are.
  int fits = t->type == INT8;
  if (fits) for (int64_t n = 0, count = (int64_t)in * out; n < count && fits; n++) fits = abs((int8_t)stored[n]) <= MOST_WEIGHT;
  float *column = need((size_t)in * sizeof *column);
  for (int32_t o = 0; o < out; o++) {
    int64_t first = layout == TABLE ? (int64_t)o * in : (int64_t)(o / head) * in * head + o % head;
    float scale = t->type == INT8 ? float_at(r, t->scale, o) : 0, most = 0;
    if (fits && W.whole) { // as they are
      if (!(fabsf(scale * MOST_WEIGHT) <= 3.4e38f)) refuse("a parameter is not a finite number");
      int8_t *to = W.whole + ((size_t)(o / COLUMNS) * (size_t)W.depth) * COLUMNS + (size_t)(o % COLUMNS) * GROUP;
      const int8_t *from = (const int8_t *)stored + first;
      int32_t total = 0;
      for (int32_t i = 0; i < in; to += COLUMNS * GROUP)
        for (int k = 0; k < GROUP && i < in; k++, i++, from += across) total += *from, to[k] = (int8_t)(*from + SHIFT_WEIGHT);
      W.scale[o] = scale;
      W.sum[o] = total;
      continue;
    }
    for (int32_t i = 0; i < in; i++) {
      int64_t at = first + i * across;
      column[i] = t->type == INT8 ? (float)(int8_t)stored[at] * scale : float_at(r, t->offset, at);
      float size = fabsf(column[i]);
      if (!(size <= 3.4e38f)) refuse("a parameter is not a finite number");
      most = size > most ? size : most;
    }
    if (W.values) {
      for (int32_t i = 0; i < in; i++) W.values[((size_t)(o / COLUMNS) * (size_t)in + (size_t)i) * COLUMNS + (size_t)(o % COLUMNS)] = column[i];
      continue;
    }
    W.scale[o] = (most > 0 ? most : 1.0f) / MOST_WEIGHT;
    int8_t *to = W.whole + ((size_t)(o / COLUMNS) * (size_t)W.depth) * COLUMNS + (size_t)(o % COLUMNS) * GROUP;
    for (int32_t i = 0; i < in; i++) {
      float whole = (column[i] / W.scale[o] + ROUNDS) - ROUNDS;
      if (!(fabsf(whole) <= MOST_WEIGHT)) { // a scale that vanished
        refuse("a parameter is too small or too large for whole numbers");
        whole = 0;
      }
      W.sum[o] += (int32_t)whole;
      to[(size_t)(i / GROUP) * COLUMNS * GROUP + (size_t)(i % GROUP)] = (int8_t)((int32_t)whole + SHIFT_WEIGHT);
    }
  }
  let_go(column);
  return W;
}

static Matrix read_projection(Reader *r, int32_t in, int32_t out, int32_t head, int has_bias) {
  Matrix W = read_matrix(r, in, out, head, PLAIN);
  if (has_bias) W.bias = read_vector(r, out);
  return W;
}

static Attention read_attention(Reader *r) {
  const int32_t *c = r->model->size, d = c[D_MODEL], e = c[N_HEADS] * c[D_HEAD];
  Attention a;
  a.Q = read_projection(r, d, e, c[D_HEAD], c[ATTENTION_BIAS]);
  a.K = read_projection(r, d, e, c[D_HEAD], c[ATTENTION_BIAS]);
  a.V = read_projection(r, d, e, c[D_HEAD], c[ATTENTION_BIAS]);
  a.O = read_projection(r, e, d, d, c[ATTENTION_BIAS]);
  a.norm = read_norm(r);
  return a;
}

static FeedForward read_feed_forward(Reader *r) {
  int32_t d = r->model->size[D_MODEL], f = r->model->size[D_FF];
  FeedForward ffn;
  ffn.W1 = read_projection(r, d, f, f, 1);
  ffn.W2 = read_projection(r, f, d, d, 1);
  ffn.norm = read_norm(r);
  return ffn;
}

static const float *read_positions(Reader *r) {
  const int32_t *c = r->model->size;
  if (c[POSITIONS] == 3) {
    if ((int64_t)c[MAX_POSITIONS] * c[D_MODEL] > INT32_MAX / 4) return refuse("the table of positions is too large"), NULL;
    return read_vector(r, c[MAX_POSITIONS] * c[D_MODEL]);
  }
  if ((int64_t)c[MAX_POSITIONS] * c[D_MODEL] > 1 << 23) return refuse("the table of positions would be too large"), NULL;
  float *table = of_model(r->model, (size_t)c[MAX_POSITIONS] * (size_t)c[D_MODEL] * sizeof *table);
  if (c[POSITIONS] < 3) sinusoidal(c[POSITIONS], c[MAX_POSITIONS], c[D_MODEL], table);
  return table;
}

static int has_encoder(const Model *m) { return m->size[SHAPE] != 2; }
static int has_decoder(const Model *m) { return m->size[SHAPE] != 1; }

static int check_sizes(const int32_t *c) {
  static const int32_t most[] = {
      [SHAPE] = 2, [SOURCE_VOCABULARY] = 1 << 24, [TARGET_VOCABULARY] = 1 << 24, [D_MODEL] = 1 << 16, [N_HEADS] = 1 << 12,
      [D_HEAD] = 1 << 16, [D_FF] = 1 << 16, [N_ENCODER_LAYERS] = 1000, [N_DECODER_LAYERS] = 1000, [N_CLASSES] = 1 << 24,
      [MAX_POSITIONS] = 1 << 20, [NORM] = 1, [NORM_EPSILON] = INT32_MAX, [ACTIVATION] = 2, [POSITIONS] = 4, [TYING] = 2,
      [SCALE_EMBEDDINGS] = 1, [ATTENTION_BIAS] = 1, [OUTPUT_BIAS] = 1, [START] = 1 << 24, [END] = 1 << 24, [WHOLE_NUMBERS] = 1};
  for (int n = 0; n < N_SIZES; n++)
    if (c[n] > most[n] || c[n] < (n == START || n == END ? -1 : 0)) return refuse("a size is out of its limits");
  if (!c[D_MODEL] || !c[N_HEADS] || !c[D_HEAD] || !c[D_FF] || !c[MAX_POSITIONS]) return refuse("a size is zero");
  if ((int64_t)c[N_HEADS] * c[D_HEAD] > 1 << 16) return refuse("the heads are too wide");
  if (c[SHAPE] != 2 && (!c[SOURCE_VOCABULARY] || !c[N_ENCODER_LAYERS])) return refuse("the encoder is empty");
  if (c[SHAPE] != 1 && (!c[TARGET_VOCABULARY] || !c[N_DECODER_LAYERS])) return refuse("the decoder is empty");
  if (c[SHAPE] == 1 && !c[N_CLASSES]) return refuse("there are no classes");
  if (c[SHAPE] != 1 && (c[START] >= c[TARGET_VOCABULARY] || c[END] >= c[TARGET_VOCABULARY])) return refuse("a special token is no token");
  if (c[POSITIONS] < 3 && (c[D_MODEL] % 2 || c[D_MODEL] < (c[POSITIONS] == 2 ? 4 : 2))) return refuse("sine and cosine come in pairs");
  if (!c[SHAPE] && !c[TYING] && c[SOURCE_VOCABULARY] != c[TARGET_VOCABULARY]) return refuse("one table for two vocabularies");
  return 1;
}

Model *model_load(const int32_t *sizes, const Tensor *tensors, int32_t n_tensors, const uint8_t *data, int64_t n_bytes) {
  problem = "";
  if (!check_sizes(sizes)) return NULL;
  Model *m = need(sizeof *m);
  Reader reader = {m, tensors, n_tensors, 0, data, n_bytes, 0}, *r = &reader;
  memcpy(m->size, sizes, sizeof m->size);
  const int32_t *c = m->size;
  int one_table = c[SHAPE] == 0 && c[TYING] == 0;
  m->embedding_scale = c[SCALE_EMBEDDINGS] ? sqrtf((float)c[D_MODEL]) : 1.0f;
  m->score_divisor = sqrtf((float)c[D_HEAD]);
  memcpy(&m->epsilon, &c[NORM_EPSILON], sizeof m->epsilon);
  if (has_encoder(m)) m->source = read_matrix(r, c[D_MODEL], c[SOURCE_VOCABULARY], 0, TABLE);
  if (has_decoder(m)) m->target = one_table ? m->source : read_matrix(r, c[D_MODEL], c[TARGET_VOCABULARY], 0, TABLE);
  if (has_encoder(m)) m->source_positions = read_positions(r);
  if (has_decoder(m)) m->target_positions = c[POSITIONS] != 3 && has_encoder(m) ? m->source_positions : read_positions(r);
  if (*problem) return model_free(m), NULL;
  if (has_encoder(m)) {
    m->encoder = of_model(m, (size_t)c[N_ENCODER_LAYERS] * sizeof(Layer));
    for (int n = 0; n < c[N_ENCODER_LAYERS] && !*problem; n++)
      m->encoder[n].self = read_attention(r), m->encoder[n].ffn = read_feed_forward(r);
    if (c[NORM]) m->encoder_norm = read_norm(r);
  }
  if (has_decoder(m)) {
    m->decoder = of_model(m, (size_t)c[N_DECODER_LAYERS] * sizeof(Layer));
    for (int n = 0; n < c[N_DECODER_LAYERS] && !*problem; n++) {
      m->decoder[n].self = read_attention(r);
      if (has_encoder(m)) m->decoder[n].cross = read_attention(r);
      m->decoder[n].ffn = read_feed_forward(r);
    }
    if (c[NORM]) m->decoder_norm = read_norm(r);
  }
  if (!has_decoder(m)) m->out = read_projection(r, c[D_MODEL], c[N_CLASSES], c[N_CLASSES], 1);
  else {
    m->out = c[TYING] == 2 ? read_matrix(r, c[D_MODEL], c[TARGET_VOCABULARY], c[TARGET_VOCABULARY], PLAIN) : m->target;
    if (c[OUTPUT_BIAS]) m->out.bias = read_vector(r, c[TARGET_VOCABULARY]);
  }
  if (!*problem && r->next != n_tensors) refuse("there are more parameters than the config says");
  if (*problem) return model_free(m), NULL;
  return m;
}
