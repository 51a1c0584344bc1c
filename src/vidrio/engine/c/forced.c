// One sentence with a given translation: thanks to the causal mask one pass over all its rows computes what the decoder
// computes step by step, to the last bit. Whoever looks gets every quantity of it.

// log p of each target token and of the end token after them. NULL: refused.
float *forced(const Model *m, Record *record, const int32_t *source, int32_t n_source, const int32_t *target, int32_t n_target) {
  if (!can_translate(m, source, n_source, target, n_target)) return NULL;
  int32_t rows = n_target + 1, layers = m->size[N_DECODER_LAYERS], width = logits_width(m);
  Pass pass = pass_new(m, record), *p = &pass;
  KVCache *caches = need(2 * (size_t)layers * sizeof *caches);
  int32_t *ids = need((size_t)rows * sizeof *ids);
  float *some = need((size_t)rows * (size_t)width * sizeof *some);
  float *log_probs = need((size_t)rows * sizeof *log_probs);
  ids[0] = m->size[START];
  if (n_target) memcpy(ids + 1, target, (size_t)n_target * sizeof *ids);
  Group read = {.ids = source, .count = n_source, .cross = caches + layers};
  if (has_encoder(m)) encode(p, &read, 1), remember(p);
  decode(p, &(Group){ids, rows, caches, caches + layers, NULL, 0}, 1);
  enter(record, "out", -1, "");
  logits(p, p->x, rows, some);
  for (int32_t r = 0; r < rows; r++) {
    float *row = some + (size_t)r * (size_t)width, top = largest(row, width);
    int32_t token = r < n_target ? target[r] : m->size[END];
    log_probs[r] = token < 0 ? 0 : (row[token] - top) - log_(exp_sum(row, width, top, NULL));
    if (record) softmax(row, width);
  }
  tap(record, "prob", "", -1, some, rows, m->out.out, width);
  for (int32_t l = 0; l < 2 * layers; l++) cache_drop(&caches[l]);
  make_room(p, 0, 0);
  let_go(caches), let_go(ids), let_go(some);
  return log_probs;
}

// Encoder only: the mean row of the memory, and a linear layer on top -> probabilities of the classes. NULL: refused.
float *classify(const Model *m, Record *record, const int32_t *source, int32_t n_source) {
  const int32_t *c = m->size, d = c[D_MODEL], width = logits_width(m);
  if (has_decoder(m) || n_source < 1 || n_source > c[MAX_POSITIONS] || !are_tokens(source, n_source, c[SOURCE_VOCABULARY])) return NULL;
  Pass pass = pass_new(m, record), *p = &pass;
  float *pooled = need((size_t)d * sizeof *pooled), *some = need((size_t)width * sizeof *some);
  encode(p, &(Group){.ids = source, .count = n_source}, 1);
  for (int32_t r = 0; r < n_source; r++)
    for (int32_t i = 0; i < d; i++) pooled[i] = pooled[i] + p->x[(size_t)r * (size_t)d + (size_t)i];
  for (int32_t i = 0; i < d; i++) pooled[i] = pooled[i] / (float)n_source;
  enter(record, "out", -1, "");
  tap(record, "pooled", "", -1, pooled, d, 0, 1);
  logits(p, pooled, 1, some);
  softmax(some, width);
  tap(record, "prob", "", -1, some, 1, m->out.out, width);
  make_room(p, 0, 0);
  let_go(pooled);
  return some;
}
