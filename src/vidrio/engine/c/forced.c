// One sentence with a given translation: thanks to the causal mask one pass over all its rows computes what the decoder
// computes step by step, to the last bit. Whoever looks gets every quantity of it.

// softmax of the logits, for whoever looks.
static void tap_probabilities(const Model *m, Record *record, float *rows, int32_t n) {
  int32_t width = logits_width(m);
  if (!record) return;
  for (int32_t r = 0; r < n; r++) softmax(rows + (size_t)r * (size_t)width, width);
  tap(record, "prob", -1, rows, n, m->out.out, width);
}

// log p of each target token and of the end token after them; the rows of attention that chose them.
int32_t forced(const Model *m, Record *record, const int32_t *source, int32_t n_source, const int32_t *target, int32_t n_target, float *log_probs,
               float *attention) {
  const int32_t *c = m->size;
  int32_t rows = n_target + 1, layers = c[N_DECODER_LAYERS], width = logits_width(m), d = c[D_MODEL];
  int fits = has_decoder(m) && c[START] >= 0 && (has_encoder(m) ? n_source > 0 : !n_source) && n_source <= c[MAX_POSITIONS] && n_target >= 0 &&
             rows <= c[MAX_POSITIONS] && are_tokens(source, n_source, c[SOURCE_VOCABULARY]) && are_tokens(target, n_target, c[TARGET_VOCABULARY]);
  if (!fits) return -1;
  Pages pages = {NULL, c[N_HEADS] * c[D_HEAD]};
  Scratch w = {0};
  Cache *self = need((size_t)layers * sizeof *self), *cross = need((size_t)layers * sizeof *cross);
  int32_t *ids = need((size_t)rows * sizeof *ids);
  ids[0] = c[START];
  if (n_target) memcpy(ids + 1, target, (size_t)n_target * sizeof *ids);
  if (has_encoder(m)) {
    encode(m, &w, &pages, &source, &n_source, 1, record);
    remember(m, &w, &pages, &cross, &n_source, 1, record);
  }
  Decoding all_rows = {ids, rows, self, cross, has_encoder(m) ? attention : NULL};
  decode(m, &w, &pages, &all_rows, 1, record);
  enter(record, "out", -1, "");
  int32_t at_once = record ? rows : LOGITS_AT_ONCE;
  float *some = need((size_t)(at_once < rows ? at_once : rows) * (size_t)width * sizeof *some);
  for (int32_t first = 0; first < rows; first += at_once) {
    int32_t n = rows - first < at_once ? rows - first : at_once;
    logits(m, &w, w.x + (size_t)first * (size_t)d, n, some, record);
    for (int32_t r = 0; log_probs && r < n; r++) {
      const float *row = some + (size_t)r * (size_t)width;
      int32_t token = first + r < n_target ? target[first + r] : c[END];
      float top = largest(row, width);
      log_probs[first + r] = token < 0 ? 0 : (row[token] - top) - log_sum(row, width, top);
    }
    tap_probabilities(m, record, some, n);
  }
  for (int32_t l = 0; l < layers; l++) cache_drop(&pages, &self[l]), cache_drop(&pages, &cross[l]);
  pages_free(&pages);
  scratch_free(&w);
  let_go(self), let_go(cross), let_go(ids), let_go(some);
  return rows;
}

// Encoder only: the mean row of the memory, and a linear layer on top -> probabilities of the classes.
int32_t classify(const Model *m, Record *record, const int32_t *source, int32_t n_source, float *probabilities) {
  const int32_t *c = m->size;
  int32_t d = c[D_MODEL], width = logits_width(m);
  if (has_decoder(m) || n_source < 1 || n_source > c[MAX_POSITIONS] || !are_tokens(source, n_source, c[SOURCE_VOCABULARY])) return -1;
  Pages pages = {NULL, c[N_HEADS] * c[D_HEAD]};
  Scratch w = {0};
  encode(m, &w, &pages, &source, &n_source, 1, record);
  float *pooled = w.normed, *some = need((size_t)width * sizeof *some);
  for (int32_t i = 0; i < d; i++) pooled[i] = 0;
  for (int32_t r = 0; r < n_source; r++)
    for (int32_t i = 0; i < d; i++) pooled[i] = pooled[i] + w.x[(size_t)r * (size_t)d + (size_t)i];
  for (int32_t i = 0; i < d; i++) pooled[i] = pooled[i] / (float)n_source;
  enter(record, "out", -1, "");
  tap(record, "pooled", -1, pooled, d, 0, 1);
  logits(m, &w, pooled, 1, some, record);
  softmax(some, width);
  tap(record, "prob", -1, some, 1, m->out.out, width);
  memcpy(probabilities, some, (size_t)c[N_CLASSES] * sizeof *some);
  pages_free(&pages);
  scratch_free(&w);
  let_go(some);
  return c[N_CLASSES];
}
