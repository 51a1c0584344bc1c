// The forward pass, in order: ids -> embeddings + positions -> encoder -> decoder -> logits -> probabilities, as in
// glass/walk.py. The rows of many sentences are stacked without padding. Only attention distinguishes sentences, and no
// row depends on other sentences.

// A pass of groups of tokens through the model. Its buffers grow to the largest number of rows and keys used so far.
typedef struct {
  const Model *m;
  Record *record; // NULL if not tracing
  int32_t width; // total width of all heads
  Group *groups;
  int32_t n_groups, rows, most_rows, most_keys;
  int32_t place; // the current place, see interventions.c
  float *x, *normed, *y, *Q, *K, *V, *concat, *hidden, *product, *s, *mean, *var, *scale, *sum, *whole;
} Pass;

static Pass pass_new(const Model *m, Record *record) {
  return (Pass){.m = m, .record = record, .width = m->size[N_HEADS] * m->size[D_HEAD]};
}

// Return the width of a row of logits, padded to a multiple of the lanes.
static int32_t logits_width(const Model *m) { return in_lanes(m->out.out); }

// Allocate buffers for `rows` rows, whose attention uses at most `keys` keys.
static void reserve(Pass *p, uint64_t rows, uint64_t keys) {
  const int32_t *c = p->m->size;
  uint64_t d = (uint64_t)c[D_MODEL], e = (uint64_t)p->width, f = (uint64_t)c[D_FF], wide = d > e ? d : e, output = (uint64_t)logits_width(p->m);
  uint64_t input = (f > wide ? f : wide) + GROUP;
  output = !p->record ? 0 : input > output ? input : output;
  uint64_t heads = (uint64_t)c[N_HEADS], together = p->record ? rows : heads > ROWS_AT_ONCE ? heads : ROWS_AT_ONCE; // queries in `attend`
  struct { float **numbers; uint64_t count; } parts[] = {
      {&p->x, rows * d}, {&p->normed, rows * d}, {&p->y, rows * d}, {&p->Q, rows * wide}, {&p->K, rows * wide}, {&p->V, rows * e},
      {&p->concat, rows * e}, {&p->hidden, rows * f}, {&p->product, rows * output}, {&p->mean, rows}, {&p->var, rows},
      {&p->scale, rows}, {&p->sum, rows}, {&p->whole, rows * (input / 4)}, {&p->s, together * keys}};
  for (size_t n = 0; n < sizeof parts / sizeof *parts; n++) {
    release(*parts[n].numbers);
    *parts[n].numbers = allocate_zeroed(parts[n].count, sizeof(float));
  }
}

// Replace rows with the values given by interventions at the current place.
static void set_rows(Pass *p) {
  size_t d = (size_t)p->m->size[D_MODEL];
  for (const Group *g = p->groups; g < p->groups + p->n_groups; g++)
    for (const int32_t *one = NULL; (one = next_intervention(p->m, g->interventions, one));) {
      int32_t row = one[2] - g->seen;
      if (one[0] == SET_ROW && one[1] == p->place && row >= 0 && row < g->count)
        memcpy(p->x + (size_t)(g->first + row) * d, one + 3, d * sizeof *p->x);
    }
}

// Embed the ids of some groups: √D times the embedding of each id (§3.4), plus the row of its position (§3.5).
static void embed(Pass *p, const Stack *stack, Group *groups, int32_t n, const char *ids, const char *side) {
  int32_t d = p->m->size[D_MODEL], keys = p->most_keys;
  int64_t all = 0;
  for (Group *g = groups; g < groups + n; all += g++->count) {
    if (all + g->count > INT32_MAX) run_out();
    g->first = (int32_t)all;
    g->seen = g->self ? g->self[0].length : 0;
    int32_t written = g->count + g->seen, read = g->cross ? g->cross[0].length : 0;
    keys = written > keys ? written : keys;
    keys = read > keys ? read : keys;
  }
  int32_t rows = (int32_t)all;
  p->groups = groups, p->n_groups = n, p->rows = rows;
  if (rows > p->most_rows || keys > p->most_keys) {
    p->most_rows = rows > p->most_rows ? rows : p->most_rows;
    p->most_keys = in_lanes(keys);
    reserve(p, (uint64_t)p->most_rows, (uint64_t)p->most_keys);
  }
  enter(p->record, ids, -1, "");
  for (const Group *g = groups; g < groups + n; g++) {
    float *x = p->x + (size_t)g->first * (size_t)d;
    const float *positions = stack->positions + (size_t)g->seen * (size_t)d;
    for (int32_t r = 0; r < g->count; r++) {
      float *row = x + (size_t)r * (size_t)d;
      if (g->ids[r] < 0) memset(row, 0, (size_t)d * sizeof *row); // the model has no start token
      else look_up(&stack->table, g->ids[r], row);
      p->mean[r] = (float)g->ids[r];
    }
    tap(p->record, "ids", "", -1, p->mean, g->count, 0, 1);
    tap(p->record, "embedding", "", -1, x, g->count, d, d);
    for (size_t i = 0; i < (size_t)g->count * (size_t)d; i++) x[i] = x[i] * p->m->embedding_scale;
    tap(p->record, "scaled", "", -1, x, g->count, d, d);
    tap(p->record, "positions", "", -1, positions, g->count, d, d);
    for (size_t i = 0; i < (size_t)g->count * (size_t)d; i++) x[i] = x[i] + positions[i];
  }
  set_rows(p);
  enter(p->record, side, -1, "");
  tap(p->record, "in", "", -1, p->x, rows, d, d);
}

// --- parts ------------------------------------------------------------------------------------------------------------

// Prepare rows for products: round them to integers if matrices are integers, and otherwise leave them unchanged.
static Rows make_rows(Pass *p, const float *x, int32_t rows, int32_t d, const char *name) {
  Rows made = {x, (int8_t *)p->whole, p->scale, (int32_t *)p->sum};
  if (!p->m->size[WHOLE_NUMBERS]) return made;
  int32_t depth = (d + GROUP - 1) / GROUP * GROUP;
  whole_rows(x, rows, d, depth, &made);
  if (!p->record) return made;
  tap(p->record, name, ".scale", -1, made.scale, rows, 0, 1);
  for (size_t i = 0; i < (size_t)rows * (size_t)depth; i++) p->product[i] = (float)made.whole[i];
  tap(p->record, name, ".whole", -1, p->product, rows, d, depth);
  return made;
}

// Compute y = x W + b. Rows of y are `stride` apart. If heads > 0, the columns of each head are recorded separately.
static void project(Pass *p, const Matrix *W, const Rows *x, int32_t rows, float *y, int32_t stride, const char *name, int32_t heads) {
  float *product = p->m->size[WHOLE_NUMBERS] ? p->product : NULL;
  linear(W, x, rows, y, stride, p->record ? product : NULL);
  for (int look = product ? 0 : 1; p->record && look < 2; look++)
    for (int32_t h = 0, n = heads ? heads : 1, width = W->out / n; h < n; h++)
      tap(p->record, name, look ? "" : ".product", heads ? h : -1, (look ? y : product) + h * width, rows, width, stride);
}

// Compute gamma (x - mean) / sqrt(var + epsilon) + beta for each row, and store it in y, which may be x.
static const float *layer_norm(Pass *p, const Norm *norm, const float *x, float *y) {
  int32_t d = p->m->size[D_MODEL], rows = p->rows;
  for (int32_t r = 0; r < rows; r++, x += d, y += d) {
    float mean = sum(x, d, 0) / (float)d;
    for (int32_t i = 0; i < d; i++) y[i] = x[i] - mean;
    float var = sum(y, d, 1) / (float)d, inverse = 1.0f / sqrtf(var + p->m->epsilon);
    for (int32_t i = 0; i < d; i++) y[i] = y[i] * inverse;
    p->mean[r] = mean, p->var[r] = var;
  }
  y -= (size_t)rows * (size_t)d;
  tap(p->record, "norm", ".mean", -1, p->mean, rows, 0, 1);
  tap(p->record, "norm", ".var", -1, p->var, rows, 0, 1);
  tap(p->record, "norm", ".normed", -1, y, rows, d, d);
  for (int32_t r = 0; r < rows; r++)
    for (int32_t i = 0; i < d; i++) y[(size_t)r * (size_t)d + i] = y[(size_t)r * (size_t)d + i] * norm->gain[i] + norm->bias[i];
  if (!p->m->size[NORM]) set_rows(p); // y is p->x, because in a post-norm model norms are only at the end of sub-layers
  tap(p->record, "norm", ".out", -1, y, rows, d, d);
  return y;
}

// Return the input of a sub-layer: LayerNorm(x) in a pre-norm model, otherwise x.
static const float *sub_layer_input(Pass *p, const Norm *norm) {
  return p->m->size[NORM] ? layer_norm(p, norm, p->x, p->normed) : p->x;
}

// Add the output of a sub-layer to x, and in a post-norm model such as the paper's, apply LayerNorm to the sum. §3.1.
static void add_residual(Pass *p, const Norm *norm) {
  int32_t d = p->m->size[D_MODEL];
  for (size_t i = 0; i < (size_t)p->rows * (size_t)d; i++) p->x[i] = p->x[i] + p->y[i];
  if (p->m->size[NORM]) set_rows(p);
  tap(p->record, "sum", "", -1, p->x, p->rows, d, d);
  if (!p->m->size[NORM]) layer_norm(p, norm, p->x, p->x);
}

// --- sub-layers -------------------------------------------------------------------------------------------------------

// The rows that a row attends to. SELF: all rows of the sentence. CAUSAL: all rows so far, whose keys and values the
// hypothesis keeps. CROSS: the rows of the memory.
enum { SELF, CAUSAL, CROSS };

static KVCache *cache_of(const Group *g, int kind, int32_t layer) {
  return kind == SELF ? g->self : kind == CAUSAL ? &g->self[layer] : &g->cross[layer];
}

// Compute the keys and values of rows, and add them to the caches of their groups.
static void keys_and_values(Pass *p, const Attention *a, const Rows *y, int kind, int32_t layer) {
  int32_t e = p->width, heads = p->m->size[N_HEADS];
  project(p, &a->K, y, p->rows, p->K, e, "K", heads);
  project(p, &a->V, y, p->rows, p->V, e, "V", heads);
  for (const Group *g = p->groups; g < p->groups + p->n_groups; g++)
    for (size_t at = (size_t)g->first * (size_t)e, end = at + (size_t)g->count * (size_t)e; at < end; at += (size_t)e)
      cache_add(cache_of(g, kind, layer), e, p->K + at, p->V + at);
}

// Compute Concat(head_1, ..., head_H) W^O. §3.2.2. All that a decoder keeps of earlier tokens is the keys and values of
// its groups.
static void attention(Pass *p, const Attention *a, int kind, int32_t layer) {
  int32_t d = p->m->size[D_MODEL], e = p->width, width = p->m->size[D_HEAD], is_last = layer == p->m->size[N_DECODER_LAYERS] - 1;
  Rows x = make_rows(p, sub_layer_input(p, &a->norm), p->rows, d, "x");
  project(p, &a->Q, &x, p->rows, p->Q, e, "Q", p->m->size[N_HEADS]);
  if (kind != CROSS) keys_and_values(p, a, &x, kind, layer);
  for (const Group *g = p->groups, *end = g + p->n_groups; g < end;) {
    Group asking = *g++;
    for (; kind == CROSS && g < end && g->cross == asking.cross; g++) asking.count += g->count; // join hypotheses that attend to the same memory
    attend(p->m, &asking, cache_of(&asking, kind, layer), kind == CAUSAL, kind == CROSS && is_last ? asking.attention : NULL, p->Q, p->s, p->concat, p->record);
    float *heads = p->concat + (size_t)asking.first * (size_t)e;
    for (const int32_t *one = NULL; (one = next_intervention(p->m, asking.interventions, one));)
      for (int32_t r = 0; one[0] == HEAD_OFF && one[1] == p->place && r < asking.count; r++)
        memset(heads + (size_t)r * (size_t)e + one[2] * width, 0, (size_t)width * sizeof *heads);
    for (int32_t h = 0; p->record && h < p->m->size[N_HEADS]; h++) tap(p->record, "head", "", h, heads + h * width, asking.count, width, e);
  }
  tap(p->record, "concat", "", -1, p->concat, p->rows, e, e);
  Rows concat = make_rows(p, p->concat, p->rows, e, "concat");
  project(p, &a->O, &concat, p->rows, p->y, d, "out", 0);
  add_residual(p, &a->norm);
}

// Apply Marian's SSRU, which replaces self-attention: max(0, c), where c = f c' + (1 - f) (x W), c' is the c of the
// previous row, and f = sigmoid(x Wf + bf). Each group carries its state from row to row.
static void recurrent_cell(Pass *p, const Recurrence *a, int32_t layer) {
  int32_t d = p->m->size[D_MODEL];
  size_t width = (size_t)d;
  Rows x = make_rows(p, sub_layer_input(p, &a->norm), p->rows, d, "x");
  project(p, &a->Wf, &x, p->rows, p->Q, d, "gate", 0);
  activate(SIGMOID, p->Q, p->rows, d);
  tap(p->record, "forget", "", -1, p->Q, p->rows, d, d);
  project(p, &a->W, &x, p->rows, p->K, d, "candidate", 0);
  for (const Group *g = p->groups; g < p->groups + p->n_groups; g++) {
    KVCache *cache = &g->self[layer];
    if (!cache->state) cache->state = allocate_zeroed(width, sizeof(float)), cache->width = d;
    for (size_t at = (size_t)g->first * width, end = at + (size_t)g->count * width; at < end; at += width) {
      for (size_t i = 0; i < width; i++) cache->state[i] = p->Q[at + i] * cache->state[i] + (1.0f - p->Q[at + i]) * p->K[at + i];
      memcpy(p->y + at, cache->state, width * sizeof(float));
    }
    cache->length += g->count;
  }
  tap(p->record, "cell", "", -1, p->y, p->rows, d, d);
  activate(RELU, p->y, p->rows, d);
  tap(p->record, "out", "", -1, p->y, p->rows, d, d);
  add_residual(p, &a->norm);
}

// Compute max(0, x W1 + b1) W2 + b2 for each row separately. Eq. 2.
static void feed_forward(Pass *p, const FeedForward *ffn) {
  int32_t d = p->m->size[D_MODEL], f = p->m->size[D_FF];
  Rows x = make_rows(p, sub_layer_input(p, &ffn->norm), p->rows, d, "x");
  project(p, &ffn->W1, &x, p->rows, p->hidden, f, "hidden", 0);
  activate(p->m->size[ACTIVATION], p->hidden, p->rows, f);
  tap(p->record, "active", "", -1, p->hidden, p->rows, f, f);
  Rows active = make_rows(p, p->hidden, p->rows, f, "active");
  project(p, &ffn->W2, &active, p->rows, p->y, d, "out", 0);
  add_residual(p, &ffn->norm);
}

// --- forward pass ----------------------------------------------------------------------------------------------------------

static void enter_sub_layer(Pass *p, const char *side, int32_t layer, const char *part) {
  p->place++;
  enter(p->record, side, layer, part);
}

static int have_same_ids(const Group *a, const Group *b) {
  return a->count == b->count && !memcmp(a->ids, b->ids, (size_t)a->count * sizeof *a->ids);
}

static int by_start(const void *a, const void *b) { return ((const Group *)a)->starts - ((const Group *)b)->starts; }

// Variants of a sentence have the same rows up to their first intervention. Of all groups with the same ids, only the
// group whose first change comes last goes through the encoder from the beginning (it `starts` at -1, and is sorted
// first). Every other group starts at the place of its first change, as a copy.
static void order_by_start(const Model *m, Group *groups, int32_t n) {
  for (Group *g = groups; g < groups + n; g++) g->starts = -first_change(m, g->interventions);
  qsort(groups, (size_t)n, sizeof *groups, by_start);
  for (Group *g = groups; g < groups + n; g++) {
    const Group *first = groups;
    while (!have_same_ids(first, g)) first++;
    g->starts = first == g ? -1 : -g->starts;
  }
  qsort(groups, (size_t)n, sizeof *groups, by_start);
}

static void start_groups(Pass *p, const Group *groups, int32_t n) {
  size_t d = (size_t)p->m->size[D_MODEL];
  for (const Group *g = groups + p->n_groups; g < groups + n && g->starts <= p->place; g++) {
    const Group *from = groups;
    while (!have_same_ids(from, g)) from++;
    if (g->starts > 0) memcpy(p->x + (size_t)g->first * d, p->x + (size_t)from->first * d, (size_t)g->count * d * sizeof *p->x);
    p->n_groups++, p->rows += g->count;
  }
}

// Run the encoder: sentences -> the rows of their memories, in p->x. Figure 1, left. Self-attention, then feed-forward.
// §3.1.
static void encode(Pass *p, Group *groups, int32_t n) {
  const Model *m = p->m;
  int32_t d = m->size[D_MODEL];
  KVCache *caches = allocate_zeroed((uint64_t)n, sizeof *caches);
  p->place = 0;
  order_by_start(m, groups, n);
  embed(p, &m->encoder, groups, n, "src", "enc");
  p->n_groups = p->rows = 0;
  for (int32_t l = 0; l < m->size[N_ENCODER_LAYERS]; l++) {
    for (int32_t g = 0; g < n; g++) groups[g].self = &caches[g];
    enter_sub_layer(p, "enc", l, "self");
    start_groups(p, groups, n);
    attention(p, &m->encoder.layers[l].self, SELF, l);
    enter_sub_layer(p, "enc", l, "ffn");
    start_groups(p, groups, n);
    feed_forward(p, &m->encoder.layers[l].ffn);
    for (int32_t g = 0; g < n; g++) cache_drop(&caches[g]);
  }
  enter_sub_layer(p, "enc", -1, "");
  start_groups(p, groups, n);
  if (m->size[NORM]) layer_norm(p, &m->encoder.norm, p->x, p->x);
  enter(p->record, "", -1, "");
  tap(p->record, "memory", "", -1, p->x, p->rows, d, d);
  release(caches);
}

// Compute the keys and values of cross-attention for the memories from `encode`, once per sentence and layer.
static void remember(Pass *p) {
  for (int32_t l = 0; l < p->m->size[N_DECODER_LAYERS]; l++) {
    enter(p->record, "dec", l, "cross");
    Rows memory = make_rows(p, p->x, p->rows, p->m->size[D_MODEL], "y");
    keys_and_values(p, &p->m->decoder.layers[l].cross, &memory, CROSS, l);
  }
}

// Run the decoder: new tokens of some hypotheses -> one row per token, in p->x. Figure 1, right. Masked self-attention
// or a recurrent cell, cross-attention if there is a memory, then feed-forward. §3.1.
static void decode(Pass *p, Group *groups, int32_t n) {
  const Model *m = p->m;
  int32_t d = m->size[D_MODEL];
  p->place = decoder_place(m);
  embed(p, &m->decoder, groups, n, "tgt", "dec");
  for (int32_t l = 0; l < m->size[N_DECODER_LAYERS]; l++) {
    enter_sub_layer(p, "dec", l, m->size[DECODER_CELL] ? "ssru" : "self");
    if (m->size[DECODER_CELL]) recurrent_cell(p, &m->decoder.layers[l].ssru, l);
    else attention(p, &m->decoder.layers[l].self, CAUSAL, l);
    enter_sub_layer(p, "dec", l, "cross");
    if (has_encoder(m)) attention(p, &m->decoder.layers[l].cross, CROSS, l);
    enter_sub_layer(p, "dec", l, "ffn");
    feed_forward(p, &m->decoder.layers[l].ffn);
  }
  enter(p->record, "dec", -1, "");
  if (m->size[NORM]) layer_norm(p, &m->decoder.norm, p->x, p->x);
  tap(p->record, "out", "", -1, p->x, p->rows, d, d);
}

// Compute the logits, x W_out + b, where W_out may be the transposed embedding, or some of its columns. §3.4. Rows of
// `to` are padded with -infinity.
static void logits(Pass *p, const Matrix *out, const float *x, int32_t rows, float *to) {
  int32_t width = in_lanes(out->out);
  Rows made = make_rows(p, x, rows, p->m->size[D_MODEL], "x");
  project(p, out, &made, rows, to, width, "logits", 0);
  for (int32_t r = 0; r < rows; r++)
    for (int32_t v = out->out; v < width; v++) to[(size_t)r * (size_t)width + (size_t)v] = -INFINITY;
}
