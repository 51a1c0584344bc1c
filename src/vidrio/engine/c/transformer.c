// The whole way, top to bottom: ids -> embeddings + positions -> encoder -> decoder -> logits -> probabilities, as in
// glass/walk.py. The rows of many sentences lie below each other, without padding; only attention knows
// where one ends, so no row depends on its neighbours.

// What a pass works in; grows to the most rows and keys it has seen.
typedef struct {
  int32_t rows, keys;
  float *x, *normed, *Q, *K, *V, *concat, *y, *hidden, *active, *product, *s;
  uint8_t *whole;
  float *scale;
  int32_t *sum;
} Scratch;

static void scratch_free(Scratch *w) {
  void *all[] = {w->x, w->normed, w->Q, w->K, w->V, w->concat, w->y, w->hidden, w->active, w->product, w->s, w->whole, w->scale, w->sum};
  for (size_t n = 0; n < sizeof all / sizeof *all; n++) let_go(all[n]);
  *w = (Scratch){0};
}

static void make_room(const Model *m, Scratch *w, int32_t rows, int32_t keys, int looking) {
  const int32_t *c = m->size;
  if (rows <= w->rows && keys <= w->keys && !(looking && !w->product)) return;
  rows = rows > w->rows ? rows : w->rows;
  keys = keys > w->keys ? keys : w->keys;
  scratch_free(w);
  size_t n = (size_t)rows, d = (size_t)c[D_MODEL], e = (size_t)c[N_HEADS] * (size_t)c[D_HEAD], f = (size_t)c[D_FF];
  size_t widest = d > e ? d : e;
  widest = f > widest ? f : widest;
  *w = (Scratch){.rows = rows, .keys = keys, .x = need(n * d * 4), .normed = need(n * d * 4), .Q = need(n * e * 4), .K = need(n * e * 4),
                 .V = need(n * e * 4), .concat = need(n * e * 4 + 64), .y = need(n * d * 4), .hidden = need(n * f * 4), .active = need(n * f * 4),
                 .product = looking ? need(n * widest * 4) : NULL, .s = need((looking ? n : 32) * (size_t)in_lanes(keys) * 4),
                 .whole = need(n * (widest + GROUP) + LANES), .scale = need(n * 4), .sum = need(n * 4)};
}

// --- parts ------------------------------------------------------------------------------------------------------------

// Rows as whole numbers, if matrices are; else as they are.
static Rows make_rows(const Model *m, Scratch *w, const float *x, int32_t rows, int32_t d, const char *name, Record *record) {
  Rows made = {x, w->whole, w->scale, w->sum};
  if (!m->size[WHOLE_NUMBERS]) return made;
  int32_t depth = (d + GROUP - 1) / GROUP * GROUP;
  whole_rows(x, rows, d, depth, &made);
  if (record) {
    char address[16];
    append(append(address, name), ".scale");
    tap(record, address, -1, made.scale, rows, 0, 1);
    float *numbers = need((size_t)rows * (size_t)d * sizeof *numbers);
    for (int32_t r = 0; r < rows; r++)
      for (int32_t i = 0; i < d; i++) numbers[(size_t)r * (size_t)d + (size_t)i] = (float)(int8_t)(made.whole[(size_t)r * (size_t)depth + (size_t)i] - SHIFT_INPUT);
    append(append(address, name), ".whole");
    tap(record, address, -1, numbers, rows, d, d);
    let_go(numbers);
  }
  return made;
}

// y = x W + b; heads > 0: a head's columns are told by themselves.
static void project(const Model *m, Scratch *w, const Matrix *W, const Rows *x, int32_t rows, float *y, const char *name, int32_t heads, Record *record) {
  int looking = record && m->size[WHOLE_NUMBERS];
  linear(W, x, rows, y, W->out, looking ? w->product : NULL);
  if (!record) return;
  char address[24];
  append(append(address, name), ".product");
  if (heads) {
    if (looking) tap_heads(record, address, w->product, rows, heads, W->out / heads);
    tap_heads(record, name, y, rows, heads, W->out / heads);
  } else {
    if (looking) tap(record, address, -1, w->product, rows, W->out, W->out);
    tap(record, name, -1, y, rows, W->out, W->out);
  }
}

// gamma (x - mean) / sqrt(var + epsilon) + beta, of each row.
static void layer_norm(const Model *m, const Norm *norm, const float *x, int32_t rows, float *y, Record *record) {
  int32_t d = m->size[D_MODEL];
  size_t numbers = (size_t)rows * (size_t)d;
  float *means = NULL, *vars = NULL, *normed = NULL;
  if (record) means = need((size_t)rows * 4), vars = need((size_t)rows * 4), normed = need(numbers * 4);
  for (int32_t r = 0; r < rows; r++, x += d, y += d) {
    float mean = sum(x, d) / (float)d;
    for (int32_t i = 0; i < d; i++) y[i] = x[i] - mean;
    float var = sum_of_squares(y, d) / (float)d, inverse = 1.0f / sqrtf(var + m->epsilon);
    if (record) {
      means[r] = mean;
      vars[r] = var;
      for (int32_t i = 0; i < d; i++) normed[(size_t)r * (size_t)d + (size_t)i] = y[i] * inverse;
    }
    for (int32_t i = 0; i < d; i++) y[i] = y[i] * inverse * norm->gain[i] + norm->bias[i];
  }
  if (!record) return;
  tap(record, "mean", -1, means, rows, 0, 1);
  tap(record, "var", -1, vars, rows, 0, 1);
  tap(record, "normed", -1, normed, rows, d, d);
  tap(record, "out", -1, y - numbers, rows, d, d);
  let_go(means), let_go(vars), let_go(normed);
}

// What a sub-layer reads: LayerNorm(x) of a pre-norm model, else x itself.
static const float *sub_layer_input(const Model *m, Scratch *w, const Norm *norm, int32_t rows, const char *side, int32_t n, const char *part, Record *record) {
  char address[16];
  append(append(address, part), ".norm");
  enter(record, side, n, address);
  if (m->size[NORM]) layer_norm(m, norm, w->x, rows, w->normed, record);
  enter(record, side, n, part);
  return m->size[NORM] ? w->normed : w->x;
}

// x + what the sub-layer made of it, and LayerNorm of that in the paper's post-norm model. §3.1.
static void add_residual(const Model *m, Scratch *w, const Norm *norm, int32_t rows, const char *side, int32_t n, const char *part, Record *record) {
  int32_t d = m->size[D_MODEL];
  size_t numbers = (size_t)rows * (size_t)d;
  for (size_t i = 0; i < numbers; i++) w->x[i] = w->x[i] + w->y[i];
  tap(record, "sum", -1, w->x, rows, d, d);
  if (m->size[NORM]) return;
  char address[16];
  append(append(address, part), ".norm");
  enter(record, side, n, address);
  layer_norm(m, norm, w->x, rows, w->normed, record);
  memcpy(w->x, w->normed, numbers * sizeof(float));
}

// Keys and values of rows.
static void keys_and_values(const Model *m, Scratch *w, const Attention *a, const Rows *y, int32_t rows, Record *record) {
  project(m, w, &a->K, y, rows, w->K, "K", m->size[N_HEADS], record);
  project(m, w, &a->V, y, rows, w->V, "V", m->size[N_HEADS], record);
}

// Concat(head_1, ..., head_H) W^O. §3.2.2.
static void attend_all(const Model *m, Scratch *w, const Attention *a, const Group *groups, int32_t n_groups, int32_t rows, Record *record) {
  int32_t e = m->size[N_HEADS] * m->size[D_HEAD];
  for (int32_t g = 0; g < n_groups; g++) attend(m, &groups[g], w->Q, w->s, w->concat, record);
  tap(record, "concat", -1, w->concat, rows, e, e);
  Rows concat = make_rows(m, w, w->concat, rows, e, "concat", record);
  project(m, w, &a->O, &concat, rows, w->y, "out", 0, record);
}

// Rows ask the rows of their own sequence; `caches` (one for each group) get the keys and values of the new ones. What a
// decoder remembers of the tokens so far is in here and nowhere else.
static void self_attention(const Model *m, Scratch *w, const Attention *a, const float *x, Pages *pages, Cache **caches, Group *groups, int32_t n_groups,
                           int32_t rows, Record *record) {
  int32_t e = m->size[N_HEADS] * m->size[D_HEAD];
  Rows made = make_rows(m, w, x, rows, m->size[D_MODEL], "x", record);
  project(m, w, &a->Q, &made, rows, w->Q, "Q", m->size[N_HEADS], record);
  keys_and_values(m, w, a, &made, rows, record);
  for (int32_t g = 0; g < n_groups; g++) {
    for (int32_t r = groups[g].first; r < groups[g].first + groups[g].rows; r++)
      cache_add(pages, caches[g], w->K + (size_t)r * (size_t)e, w->V + (size_t)r * (size_t)e);
    groups[g].keys = caches[g];
  }
  attend_all(m, w, a, groups, n_groups, rows, record);
}

// max(0, x W1 + b1) W2 + b2, each row by itself. Eq. 2.
static void feed_forward(const Model *m, Scratch *w, const FeedForward *ffn, const float *x, int32_t rows, Record *record) {
  int32_t f = m->size[D_FF];
  Rows made = make_rows(m, w, x, rows, m->size[D_MODEL], "x", record);
  project(m, w, &ffn->W1, &made, rows, w->hidden, "hidden", 0, record);
  activate(m->size[ACTIVATION], w->hidden, rows * f, w->active);
  tap(record, "active", -1, w->active, rows, f, f);
  made = make_rows(m, w, w->active, rows, f, "active", record);
  project(m, w, &ffn->W2, &made, rows, w->y, "out", 0, record);
}

// --- the way ----------------------------------------------------------------------------------------------------------

// A row of the table for each id, times √D (§3.4), plus the row of its position (§3.5), counted from `first`.
static void embed(const Model *m, const Matrix *table, const float *positions, const int32_t *ids, int32_t rows, int32_t first, float *x, const char *side,
                  Record *record) {
  int32_t d = m->size[D_MODEL];
  size_t numbers = (size_t)rows * (size_t)d;
  for (int32_t r = 0; r < rows; r++) look_up(table, ids[r], x + (size_t)r * (size_t)d);
  enter(record, side, -1, "");
  if (record) {
    float *named = need((size_t)rows * sizeof *named);
    for (int32_t r = 0; r < rows; r++) named[r] = (float)ids[r];
    tap(record, "ids", -1, named, rows, 0, 1);
    let_go(named);
    tap(record, "embedding", -1, x, rows, d, d);
  }
  for (size_t i = 0; i < numbers; i++) x[i] = x[i] * m->embedding_scale;
  const float *where = positions + (size_t)first * (size_t)d;
  tap(record, "scaled", -1, x, rows, d, d);
  tap(record, "positions", -1, where, rows, d, d);
  for (size_t i = 0; i < numbers; i++) x[i] = x[i] + where[i];
}

// Self-attention, then feed-forward, each with its residual and its norm. §3.1.
static void encoder_layer(const Model *m, Scratch *w, int32_t n, Pages *pages, Cache **caches, Group *groups, int32_t n_groups, int32_t rows, Record *record) {
  const Layer *layer = &m->encoder[n];
  const float *x = sub_layer_input(m, w, &layer->self.norm, rows, "enc", n, "self", record);
  self_attention(m, w, &layer->self, x, pages, caches, groups, n_groups, rows, record);
  add_residual(m, w, &layer->self.norm, rows, "enc", n, "self", record);
  x = sub_layer_input(m, w, &layer->ffn.norm, rows, "enc", n, "ffn", record);
  feed_forward(m, w, &layer->ffn, x, rows, record);
  add_residual(m, w, &layer->ffn.norm, rows, "enc", n, "ffn", record);
}

// The end of a tower: the last norm of a pre-norm model. What comes out stays in w->x.
static void last_norm(const Model *m, Scratch *w, const Norm *norm, int32_t rows, const char *side, const char *name, Record *record) {
  int32_t d = m->size[D_MODEL];
  enter(record, side, -1, "");
  if (record) append(append(record->place, side), ".norm");
  if (m->size[NORM]) {
    layer_norm(m, norm, w->x, rows, w->normed, record);
    memcpy(w->x, w->normed, (size_t)rows * (size_t)d * sizeof(float));
  }
  enter(record, "", -1, "");
  tap(record, name, -1, w->x, rows, d, d);
}

// The encoder: the ids of some sentences -> their memories, row by row in w->x. Figure 1, left.
static void encode(const Model *m, Scratch *w, Pages *pages, const int32_t *const *sources, const int32_t *lengths, int32_t n, Record *record) {
  int32_t rows = 0, longest = 0, d = m->size[D_MODEL];
  for (int32_t i = 0; i < n; i++) rows += lengths[i], longest = lengths[i] > longest ? lengths[i] : longest;
  make_room(m, w, rows, longest, record != NULL);
  Cache *caches = need((size_t)n * sizeof *caches), **each = need((size_t)n * sizeof *each);
  Group *groups = need((size_t)n * sizeof *groups);
  for (int32_t i = 0, first = 0; i < n; first += lengths[i++]) {
    each[i] = &caches[i];
    groups[i] = (Group){first, lengths[i], -1, NULL, NULL};
    embed(m, &m->source, m->source_positions, sources[i], lengths[i], 0, w->x + (size_t)first * (size_t)d, "src", record);
  }
  enter(record, "enc", -1, "");
  tap(record, "in", -1, w->x, rows, d, d);
  for (int32_t l = 0; l < m->size[N_ENCODER_LAYERS]; l++) {
    encoder_layer(m, w, l, pages, each, groups, n, rows, record);
    for (int32_t i = 0; i < n; i++) cache_drop(pages, &caches[i]);
  }
  last_norm(m, w, &m->encoder_norm, rows, "enc", "memory", record);
  let_go(caches), let_go(each), let_go(groups);
}

// Cross-attention's keys and values of memories in w->x, made once a sentence: cross[i] has a cache for each layer.
static void remember(const Model *m, Scratch *w, Pages *pages, Cache *const *cross, const int32_t *lengths, int32_t n, Record *record) {
  int32_t rows = 0, e = m->size[N_HEADS] * m->size[D_HEAD];
  for (int32_t i = 0; i < n; i++) rows += lengths[i];
  for (int32_t l = 0; l < m->size[N_DECODER_LAYERS]; l++) {
    enter(record, "dec", l, "cross");
    Rows memory = make_rows(m, w, w->x, rows, m->size[D_MODEL], "y", record);
    keys_and_values(m, w, &m->decoder[l].cross, &memory, rows, record);
    for (int32_t i = 0, r = 0; i < n; i++)
      for (int32_t t = 0; t < lengths[i]; t++, r++)
        cache_add(pages, &cross[i][l], w->K + (size_t)r * (size_t)e, w->V + (size_t)r * (size_t)e);
  }
}

// Tokens that one hypothesis decodes now: what they follow is in its caches, one for each layer.
typedef struct { const int32_t *ids; int32_t count; Cache *self; const Cache *cross; float *looked; } Decoding;

// Masked self-attention, cross-attention to the memory (if there is one), feed-forward. §3.1.
static void decoder_layer(const Model *m, Scratch *w, int32_t n, Pages *pages, const Decoding *some, Group *groups, Cache **caches, int32_t n_groups,
                          int32_t rows, Record *record) {
  const Layer *layer = &m->decoder[n];
  for (int32_t g = 0; g < n_groups; g++) {
    caches[g] = &some[g].self[n];
    groups[g].before = caches[g]->length;
    groups[g].looked = NULL;
  }
  const float *x = sub_layer_input(m, w, &layer->self.norm, rows, "dec", n, "self", record);
  self_attention(m, w, &layer->self, x, pages, caches, groups, n_groups, rows, record);
  add_residual(m, w, &layer->self.norm, rows, "dec", n, "self", record);
  if (has_encoder(m)) {
    x = sub_layer_input(m, w, &layer->cross.norm, rows, "dec", n, "cross", record);
    for (int32_t g = 0; g < n_groups; g++)
      groups[g] = (Group){groups[g].first, groups[g].rows, -1, &some[g].cross[n], n == m->size[N_DECODER_LAYERS] - 1 ? some[g].looked : NULL};
    Rows made = make_rows(m, w, x, rows, m->size[D_MODEL], "x", record);
    project(m, w, &layer->cross.Q, &made, rows, w->Q, "Q", m->size[N_HEADS], record);
    attend_all(m, w, &layer->cross, groups, n_groups, rows, record);
    add_residual(m, w, &layer->cross.norm, rows, "dec", n, "cross", record);
  }
  x = sub_layer_input(m, w, &layer->ffn.norm, rows, "dec", n, "ffn", record);
  feed_forward(m, w, &layer->ffn, x, rows, record);
  add_residual(m, w, &layer->ffn.norm, rows, "dec", n, "ffn", record);
}

// The decoder: new tokens of some hypotheses -> one row for each, in w->x. Figure 1, right.
static void decode(const Model *m, Scratch *w, Pages *pages, const Decoding *some, int32_t n, Record *record) {
  int32_t rows = 0, keys = 0, d = m->size[D_MODEL];
  for (int32_t g = 0; g < n; g++) {
    int32_t written = some[g].self[0].length + some[g].count, read = some[g].cross ? some[g].cross[0].length : 0;
    rows += some[g].count;
    keys = written > keys ? written : keys;
    keys = read > keys ? read : keys;
  }
  make_room(m, w, rows, keys, record != NULL);
  Group *groups = need((size_t)n * sizeof *groups);
  Cache **caches = need((size_t)n * sizeof *caches);
  for (int32_t g = 0, first = 0; g < n; first += some[g++].count) {
    groups[g] = (Group){first, some[g].count, 0, NULL, NULL};
    embed(m, &m->target, m->target_positions, some[g].ids, some[g].count, some[g].self[0].length, w->x + (size_t)first * (size_t)d, "tgt", record);
  }
  enter(record, "dec", -1, "");
  tap(record, "in", -1, w->x, rows, d, d);
  for (int32_t l = 0; l < m->size[N_DECODER_LAYERS]; l++) decoder_layer(m, w, l, pages, some, groups, caches, n, rows, record);
  last_norm(m, w, &m->decoder_norm, rows, "dec", "dec.out", record);
  let_go(groups), let_go(caches);
}

// One number for each word of the vocabulary: x W_out + b, where W_out may be the embedding, transposed. §3.4. A row of
// `to` is filled up to whole lanes with -infinity.
static int32_t logits_width(const Model *m) { return in_lanes(m->out.out); }

static void logits(const Model *m, Scratch *w, const float *x, int32_t rows, float *to, Record *record) {
  int32_t width = logits_width(m), n = m->out.out;
  Rows made = make_rows(m, w, x, rows, m->size[D_MODEL], "x", record);
  float *product = record && m->size[WHOLE_NUMBERS] ? need((size_t)rows * (size_t)width * sizeof *product) : NULL;
  linear(&m->out, &made, rows, to, width, product);
  for (int32_t r = 0; r < rows; r++)
    for (int32_t v = n; v < width; v++) to[(size_t)r * (size_t)width + (size_t)v] = -INFINITY;
  if (product) tap(record, "logits.product", -1, product, rows, n, width);
  let_go(product);
  tap(record, "logits", -1, to, rows, n, width);
}
