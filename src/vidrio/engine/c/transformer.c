// The whole way, top to bottom: ids -> embeddings + positions -> encoder -> decoder -> logits -> probabilities, as in
// glass/walk.py. The rows of many sentences lie below each other, without padding; only attention knows
// where one ends, so no row depends on its neighbours.

// Ids go through the model together. What a pass works in grows to the most rows and keys it has seen.
typedef struct {
  const Model *m;
  Record *record; // who looks, or NULL
  Pages pages;
  int32_t rows;
  Group *groups; // of one sentence, or hypothesis, each
  int32_t n_groups, groups_room;
  int32_t most_rows, most_keys;
  float *x, *normed, *Q, *K, *V, *concat, *y, *hidden, *active, *product, *s;
  uint8_t *whole;
  float *scale;
  int32_t *sum;
} Pass;

static Pass pass_new(const Model *m, Record *record) {
  return (Pass){.m = m, .record = record, .pages = {NULL, m->size[N_HEADS] * m->size[D_HEAD]}};
}

static void drop_scratch(Pass *p) {
  void *all[] = {p->x, p->normed, p->Q, p->K, p->V, p->concat, p->y, p->hidden, p->active, p->product, p->s, p->whole, p->scale, p->sum};
  for (size_t n = 0; n < sizeof all / sizeof *all; n++) let_go(all[n]);
}

static void pass_free(Pass *p) {
  pages_free(&p->pages);
  drop_scratch(p);
  let_go(p->groups);
}

// One number for each word of the vocabulary, in rows that are filled up to whole lanes.
static int32_t logits_width(const Model *m) { return in_lanes(m->out.out); }

// A pass of so many rows that ask at most so many keys begins.
static void begin_pass(Pass *p, int32_t rows, int32_t keys) {
  const int32_t *c = p->m->size;
  p->rows = rows;
  if (rows <= p->most_rows && keys <= p->most_keys) return;
  p->most_rows = rows = rows > p->most_rows ? rows : p->most_rows;
  p->most_keys = keys = keys > p->most_keys ? keys : p->most_keys;
  drop_scratch(p);
  size_t n = (size_t)rows, d = (size_t)c[D_MODEL], e = (size_t)c[N_HEADS] * (size_t)c[D_HEAD], f = (size_t)c[D_FF];
  size_t input = d > e ? d : e, output = (size_t)logits_width(p->m);
  input = f > input ? f : input;
  output = input > output ? input : output;
  p->x = need(n * d * 4), p->normed = need(n * d * 4), p->Q = need(n * e * 4), p->K = need(n * e * 4), p->V = need(n * e * 4);
  p->concat = need(n * e * 4 + 64), p->y = need(n * d * 4), p->hidden = need(n * f * 4), p->active = need(n * f * 4);
  p->product = p->record ? need(n * output * 4) : NULL;
  p->s = need((p->record ? n : 32) * (size_t)in_lanes(keys) * 4);
  p->whole = need(n * (input + GROUP) + LANES), p->scale = need(n * 4), p->sum = need(n * 4);
}

// --- parts ------------------------------------------------------------------------------------------------------------

// Rows as whole numbers, if matrices are; else as they are.
static Rows make_rows(Pass *p, const float *x, int32_t rows, int32_t d, const char *name) {
  Rows made = {x, p->whole, p->scale, p->sum};
  if (!p->m->size[WHOLE_NUMBERS]) return made;
  int32_t depth = (d + GROUP - 1) / GROUP * GROUP;
  whole_rows(x, rows, d, depth, &made);
  if (!p->record) return made;
  tap(p->record, name_of(name, ".scale").text, -1, made.scale, rows, 0, 1);
  for (int32_t r = 0; r < rows; r++)
    for (int32_t i = 0; i < d; i++) p->product[(size_t)r * (size_t)d + (size_t)i] = (float)(int8_t)(made.whole[(size_t)r * (size_t)depth + (size_t)i] - SHIFT_INPUT);
  tap(p->record, name_of(name, ".whole").text, -1, p->product, rows, d, d);
  return made;
}

// y = x W + b of all rows; heads > 0: a head's columns are recorded by themselves.
static void project(Pass *p, const Matrix *W, const Rows *x, float *y, const char *name, int32_t heads) {
  int exact = p->record && p->m->size[WHOLE_NUMBERS];
  linear(W, x, p->rows, y, W->out, exact ? p->product : NULL);
  if (exact) tap_heads(p->record, name_of(name, ".product").text, heads, p->product, p->rows, W->out);
  tap_heads(p->record, name, heads, y, p->rows, W->out);
}

// gamma (x - mean) / sqrt(var + epsilon) + beta, of each row.
static void layer_norm(Pass *p, const Norm *norm, const float *x, float *y) {
  int32_t d = p->m->size[D_MODEL], rows = p->rows;
  size_t numbers = (size_t)rows * (size_t)d;
  float *means = NULL, *vars = NULL, *normed = NULL;
  if (p->record) means = need((size_t)rows * 4), vars = need((size_t)rows * 4), normed = need(numbers * 4);
  for (int32_t r = 0; r < rows; r++, x += d, y += d) {
    float mean = sum(x, d) / (float)d;
    for (int32_t i = 0; i < d; i++) y[i] = x[i] - mean;
    float var = sum_of_squares(y, d) / (float)d, inverse = 1.0f / sqrtf(var + p->m->epsilon);
    if (p->record) {
      means[r] = mean;
      vars[r] = var;
      for (int32_t i = 0; i < d; i++) normed[(size_t)r * (size_t)d + (size_t)i] = y[i] * inverse;
    }
    for (int32_t i = 0; i < d; i++) y[i] = y[i] * inverse * norm->gain[i] + norm->bias[i];
  }
  if (!p->record) return;
  tap(p->record, "norm.mean", -1, means, rows, 0, 1);
  tap(p->record, "norm.var", -1, vars, rows, 0, 1);
  tap(p->record, "norm.normed", -1, normed, rows, d, d);
  tap(p->record, "norm.out", -1, y - numbers, rows, d, d);
  let_go(means), let_go(vars), let_go(normed);
}

// LayerNorm(x) in the place of x.
static void norm_rows(Pass *p, const Norm *norm) {
  layer_norm(p, norm, p->x, p->normed);
  memcpy(p->x, p->normed, (size_t)p->rows * (size_t)p->m->size[D_MODEL] * sizeof(float));
}

// What a sub-layer reads: LayerNorm(x) of a pre-norm model, else x itself.
static const float *sub_layer_input(Pass *p, const Norm *norm) {
  if (!p->m->size[NORM]) return p->x;
  layer_norm(p, norm, p->x, p->normed);
  return p->normed;
}

// x + what the sub-layer made of it, and LayerNorm of that in the paper's post-norm model. §3.1.
static void add_residual(Pass *p, const Norm *norm) {
  int32_t d = p->m->size[D_MODEL];
  for (size_t i = 0; i < (size_t)p->rows * (size_t)d; i++) p->x[i] = p->x[i] + p->y[i];
  tap(p->record, "sum", -1, p->x, p->rows, d, d);
  if (!p->m->size[NORM]) norm_rows(p, norm);
}

// Keys and values of rows, which go where each group keeps its own.
static void keys_and_values(Pass *p, const Attention *a, const Rows *y) {
  int32_t e = p->m->size[N_HEADS] * p->m->size[D_HEAD];
  project(p, &a->K, y, p->K, "K", p->m->size[N_HEADS]);
  project(p, &a->V, y, p->V, "V", p->m->size[N_HEADS]);
  for (const Group *g = p->groups; g < p->groups + p->n_groups; g++)
    for (int32_t r = g->first; r < g->first + g->rows; r++)
      cache_add(&p->pages, g->keys, p->K + (size_t)r * (size_t)e, p->V + (size_t)r * (size_t)e);
}

// Concat(head_1, ..., head_H) W^O. §3.2.2.
static void attend_all(Pass *p, const Attention *a) {
  int32_t e = p->m->size[N_HEADS] * p->m->size[D_HEAD];
  for (int32_t g = 0; g < p->n_groups; g++) attend(p->m, &p->groups[g], p->Q, p->s, p->concat, p->record);
  tap(p->record, "concat", -1, p->concat, p->rows, e, e);
  Rows concat = make_rows(p, p->concat, p->rows, e, "concat");
  project(p, &a->O, &concat, p->y, "out", 0);
}

// Rows ask the rows of their own sequence. What a decoder remembers of the tokens so far is in the keys and values that
// its groups keep, and nowhere else.
static void self_attention(Pass *p, const Attention *a, const float *x) {
  Rows made = make_rows(p, x, p->rows, p->m->size[D_MODEL], "x");
  project(p, &a->Q, &made, p->Q, "Q", p->m->size[N_HEADS]);
  keys_and_values(p, a, &made);
  attend_all(p, a);
}

// Rows ask the memory of what was read.
static void cross_attention(Pass *p, const Attention *a, const float *x) {
  Rows made = make_rows(p, x, p->rows, p->m->size[D_MODEL], "x");
  project(p, &a->Q, &made, p->Q, "Q", p->m->size[N_HEADS]);
  attend_all(p, a);
}

// max(0, x W1 + b1) W2 + b2, each row by itself. Eq. 2.
static void feed_forward(Pass *p, const FeedForward *ffn, const float *x) {
  int32_t f = p->m->size[D_FF];
  Rows made = make_rows(p, x, p->rows, p->m->size[D_MODEL], "x");
  project(p, &ffn->W1, &made, p->hidden, "hidden", 0);
  activate(p->m->size[ACTIVATION], p->hidden, p->rows * f, p->active);
  tap(p->record, "active", -1, p->active, p->rows, f, f);
  made = make_rows(p, p->active, p->rows, f, "active");
  project(p, &ffn->W2, &made, p->y, "out", 0);
}

// --- the way ----------------------------------------------------------------------------------------------------------

// A row of the table for each id, times √D (§3.4), plus the row of its position (§3.5), counted from `before`.
static void embed(Pass *p, const Matrix *table, const float *positions, const int32_t *ids, const Group *g, int32_t before) {
  int32_t d = p->m->size[D_MODEL], rows = g->rows;
  size_t numbers = (size_t)rows * (size_t)d;
  float *x = p->x + (size_t)g->first * (size_t)d;
  const float *where = positions + (size_t)before * (size_t)d;
  for (int32_t r = 0; r < rows; r++) look_up(table, ids[r], x + (size_t)r * (size_t)d);
  for (int32_t r = 0; p->record && r < rows; r++) p->product[r] = (float)ids[r];
  tap(p->record, "ids", -1, p->product, rows, 0, 1);
  tap(p->record, "embedding", -1, x, rows, d, d);
  for (size_t i = 0; i < numbers; i++) x[i] = x[i] * p->m->embedding_scale;
  tap(p->record, "scaled", -1, x, rows, d, d);
  tap(p->record, "positions", -1, where, rows, d, d);
  for (size_t i = 0; i < numbers; i++) x[i] = x[i] + where[i];
}

// Self-attention, then feed-forward, each with its residual and its norm. §3.1.
static void encoder_layer(Pass *p, int32_t n) {
  const Layer *layer = &p->m->encoder[n];
  enter(p->record, "enc", n, "self");
  const float *x = sub_layer_input(p, &layer->self.norm);
  self_attention(p, &layer->self, x);
  add_residual(p, &layer->self.norm);
  enter(p->record, "enc", n, "ffn");
  x = sub_layer_input(p, &layer->ffn.norm);
  feed_forward(p, &layer->ffn, x);
  add_residual(p, &layer->ffn.norm);
}

// A sentence to read, and where the decoder's layers keep the keys and values of its memory.
typedef struct { const int32_t *ids; int32_t count; KVCache *cross; } Source;

// The encoder: the ids of some sentences -> their memories, row by row in p->x. Figure 1, left.
static void encode(Pass *p, const Source *sources, int32_t n) {
  const Model *m = p->m;
  int32_t rows = 0, longest = 0, d = m->size[D_MODEL];
  for (int32_t i = 0; i < n; i++) rows += sources[i].count, longest = sources[i].count > longest ? sources[i].count : longest;
  begin_pass(p, rows, longest);
  p->groups = with_room(p->groups, n, &p->groups_room, sizeof *p->groups);
  p->n_groups = n;
  KVCache *caches = need((size_t)n * sizeof *caches);
  enter(p->record, "src", -1, "");
  for (int32_t i = 0, first = 0; i < n; first += sources[i++].count) {
    p->groups[i] = (Group){first, sources[i].count, -1, &caches[i], NULL};
    embed(p, &m->source, m->source_positions, sources[i].ids, &p->groups[i], 0);
  }
  enter(p->record, "enc", -1, "");
  tap(p->record, "in", -1, p->x, rows, d, d);
  for (int32_t l = 0; l < m->size[N_ENCODER_LAYERS]; l++) {
    encoder_layer(p, l);
    for (int32_t i = 0; i < n; i++) cache_drop(&p->pages, &caches[i]);
  }
  enter(p->record, "enc", -1, "");
  if (m->size[NORM]) norm_rows(p, &m->encoder_norm);
  enter(p->record, "", -1, "");
  tap(p->record, "memory", -1, p->x, rows, d, d);
  let_go(caches);
}

// Cross-attention's keys and values of the memories that `encode` has just made, once a sentence and layer.
static void remember(Pass *p, const Source *sources) {
  for (int32_t l = 0; l < p->m->size[N_DECODER_LAYERS]; l++) {
    enter(p->record, "dec", l, "cross");
    Rows memory = make_rows(p, p->x, p->rows, p->m->size[D_MODEL], "y");
    for (int32_t g = 0; g < p->n_groups; g++) p->groups[g].keys = &sources[g].cross[l];
    keys_and_values(p, &p->m->decoder[l].cross, &memory);
  }
}

// Tokens that one hypothesis decodes now: what they follow is in its caches, one for each layer. `looked` gets a row of
// attention for each, or is NULL.
typedef struct { const int32_t *ids; int32_t count; KVCache *self, *cross; float *looked; } Decoding;

// Masked self-attention, cross-attention to the memory (if there is one), feed-forward. §3.1.
static void decoder_layer(Pass *p, int32_t n, const Decoding *some) {
  const Layer *layer = &p->m->decoder[n];
  int is_last = n == p->m->size[N_DECODER_LAYERS] - 1;
  for (int32_t g = 0; g < p->n_groups; g++)
    p->groups[g] = (Group){p->groups[g].first, some[g].count, some[g].self[n].length, &some[g].self[n], NULL};
  enter(p->record, "dec", n, "self");
  const float *x = sub_layer_input(p, &layer->self.norm);
  self_attention(p, &layer->self, x);
  add_residual(p, &layer->self.norm);
  if (has_encoder(p->m)) {
    for (int32_t g = 0; g < p->n_groups; g++)
      p->groups[g] = (Group){p->groups[g].first, some[g].count, -1, &some[g].cross[n], is_last ? some[g].looked : NULL};
    enter(p->record, "dec", n, "cross");
    x = sub_layer_input(p, &layer->cross.norm);
    cross_attention(p, &layer->cross, x);
    add_residual(p, &layer->cross.norm);
  }
  enter(p->record, "dec", n, "ffn");
  x = sub_layer_input(p, &layer->ffn.norm);
  feed_forward(p, &layer->ffn, x);
  add_residual(p, &layer->ffn.norm);
}

// The decoder: new tokens of some hypotheses -> one row for each, in p->x. Figure 1, right.
static void decode(Pass *p, const Decoding *some, int32_t n) {
  const Model *m = p->m;
  int32_t rows = 0, keys = 0, d = m->size[D_MODEL];
  for (int32_t g = 0; g < n; g++) {
    int32_t written = some[g].self[0].length + some[g].count, read = some[g].cross ? some[g].cross[0].length : 0;
    rows += some[g].count;
    keys = written > keys ? written : keys;
    keys = read > keys ? read : keys;
  }
  begin_pass(p, rows, keys);
  p->groups = with_room(p->groups, n, &p->groups_room, sizeof *p->groups);
  p->n_groups = n;
  enter(p->record, "tgt", -1, "");
  for (int32_t g = 0, first = 0; g < n; first += some[g++].count) {
    p->groups[g] = (Group){.first = first, .rows = some[g].count};
    embed(p, &m->target, m->target_positions, some[g].ids, &p->groups[g], some[g].self[0].length);
  }
  enter(p->record, "dec", -1, "");
  tap(p->record, "in", -1, p->x, rows, d, d);
  for (int32_t l = 0; l < m->size[N_DECODER_LAYERS]; l++) decoder_layer(p, l, some);
  enter(p->record, "dec", -1, "");
  if (m->size[NORM]) norm_rows(p, &m->decoder_norm);
  tap(p->record, "out", -1, p->x, rows, d, d);
}

// x W_out + b, where W_out may be the embedding, transposed. §3.4. Rows of `to` are filled up with -infinity.
static void logits(Pass *p, const float *x, int32_t rows, float *to) {
  int32_t width = logits_width(p->m), n = p->m->out.out;
  int exact = p->record && p->m->size[WHOLE_NUMBERS];
  Rows made = make_rows(p, x, rows, p->m->size[D_MODEL], "x");
  linear(&p->m->out, &made, rows, to, width, exact ? p->product : NULL);
  for (int32_t r = 0; r < rows; r++)
    for (int32_t v = n; v < width; v++) to[(size_t)r * (size_t)width + (size_t)v] = -INFINITY;
  if (exact) tap(p->record, "logits.product", -1, p->product, rows, n, width);
  tap(p->record, "logits", -1, to, rows, n, width);
}
