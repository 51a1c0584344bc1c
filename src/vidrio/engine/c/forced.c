// One sentence with a given translation: thanks to the causal mask one pass over all its rows computes what the decoder
// computes step by step, to the last bit. A Record gets every quantity of it.

// log p of each target token and of the end token after them. NULL: refused, or no memory is left.
float *forced(const Model *m, Record *record, const int32_t *source, int32_t n_source, const int32_t *target, int32_t n_target) {
  *problem = 0;
  if (!can_translate(m, source, n_source, target, n_target)) return NULL;
  int32_t rows = n_target + 1, layers = m->size[N_DECODER_LAYERS], width = logits_width(m);
  Pass pass = pass_new(m, record), *p = &pass;
  KVCache *caches = new_owner(2 * (size_t)layers * sizeof *caches);
  if (!caches) return NULL;
  if (RAN_OUT) return release_all(caches), NULL;
  int32_t *ids = allocate_zeroed((uint64_t)rows, sizeof *ids);
  float *some = allocate_zeroed((uint64_t)rows * (uint64_t)width, sizeof *some);
  float *log_probs = allocate_zeroed((uint64_t)rows, sizeof *log_probs);
  ids[0] = m->size[START];
  if (n_target) memcpy(ids + 1, target, (size_t)n_target * sizeof *ids);
  Group read = {.ids = source, .count = n_source, .cross = caches + layers};
  if (has_encoder(m)) encode(p, &read, 1), remember(p);
  decode(p, &(Group){ids, rows, caches, caches + layers, NULL, 0}, 1);
  enter(record, "out", -1, "");
  logits(p, &m->out, p->x, rows, some);
  for (int32_t r = 0; r < rows; r++) {
    float *row = some + (size_t)r * (size_t)width, top = largest(row, width);
    int32_t token = r < n_target ? target[r] : m->size[END];
    log_probs[r] = token < 0 ? 0 : (row[token] - top) - log_(exp_sum(row, width, top, NULL));
    if (record) softmax(row, width);
  }
  tap(record, "prob", "", -1, some, rows, m->out.out, width);
  unlink_block(block_of(log_probs)); // the host's, which releases it
  release_all(caches);
  return log_probs;
}

// Encoder only: the mean row of the memory, and a linear layer on top -> probabilities of the classes. NULL: refused, or no memory
// is left.
float *classify(const Model *m, Record *record, const int32_t *source, int32_t n_source) {
  const int32_t *c = m->size, d = c[D_MODEL], width = logits_width(m);
  *problem = 0;
  if (has_decoder(m) || n_source < 1 || n_source > c[MAX_POSITIONS] || !are_tokens(source, n_source, c[SOURCE_VOCABULARY])) return NULL;
  Pass pass = pass_new(m, record), *p = &pass;
  float *pooled = new_owner((size_t)d * sizeof *pooled);
  if (!pooled) return NULL;
  if (RAN_OUT) return release_all(pooled), NULL;
  float *some = allocate_zeroed((uint64_t)width, sizeof *some);
  encode(p, &(Group){.ids = source, .count = n_source}, 1);
  for (int32_t r = 0; r < n_source; r++)
    for (int32_t i = 0; i < d; i++) pooled[i] = pooled[i] + p->x[(size_t)r * (size_t)d + (size_t)i];
  for (int32_t i = 0; i < d; i++) pooled[i] = pooled[i] / (float)n_source;
  enter(record, "out", -1, "");
  tap(record, "pooled", "", -1, pooled, d, 0, 1);
  logits(p, &m->out, pooled, 1, some);
  softmax(some, width);
  tap(record, "prob", "", -1, some, 1, m->out.out, width);
  unlink_block(block_of(some)); // the host's
  release_all(pooled);
  return some;
}
