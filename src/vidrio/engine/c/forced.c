// A sentence with a given translation. Because of the causal mask, a single pass over all rows computes the same values
// as the decoder step by step, bit for bit. A Record receives all quantities.

// The sentence goes through the model once for each variant. For each of them, `variants` contains the number of words
// of its interventions, followed by these words. Returns 0 if the input is rejected.
static int32_t count_variants(const Model *m, const int32_t *variants, int32_t count, int32_t n_source) {
  int32_t n = 0, at = 0;
  for (; at < count; at += 1 + variants[at], n++)
    if (variants[at] < 0 || variants[at] > count - at - 1 || !are_interventions(m, (Interventions){variants + at + 1, variants[at]}, n_source)) return 0;
  return n;
}

// Return log p of two tokens for each variant and each row (the start token and the n_target tokens). `asked` contains
// the two tokens for each row; a token of -1 gives 0. Returns NULL if the input is rejected or memory runs out.
float *forced(const Model *m, Record *record, const int32_t *source, int32_t n_source, const int32_t *target, int32_t n_target, const int32_t *asked,
              const int32_t *variants, int32_t n_words) {
  *problem = 0;
  if (!can_translate(m, source, n_source, target, n_target)) return NULL;
  int32_t rows = n_target + 1, layers = m->size[N_DECODER_LAYERS], width = logits_width(m), d = m->size[D_MODEL], n = count_variants(m, variants, n_words, n_source);
  for (int32_t i = 0; i < 2 * rows; i++) n = asked[i] < -1 || asked[i] >= m->size[TARGET_VOCABULARY] ? 0 : n;
  if (!n || (record && n > 1) || (int64_t)n * rows > INT32_MAX / 2) return NULL;
  Pass pass = pass_new(m, record), *p = &pass;
  int32_t *ids = new_owner((size_t)rows * sizeof *ids);
  if (!ids) return NULL;
  if (RAN_OUT) return release_all(ids), NULL;
  Group *read = allocate_zeroed((uint64_t)n, sizeof *read), *write = allocate_zeroed((uint64_t)n, sizeof *write);
  KVCache *caches = allocate_zeroed(2 * (uint64_t)n * (uint64_t)layers, sizeof *caches);
  int32_t *wanted = allocate_zeroed((uint64_t)n * (uint64_t)rows, sizeof *wanted), n_wanted = 0;
  float *some = allocate_zeroed((uint64_t)rows * (uint64_t)width, sizeof *some), *last = allocate_zeroed((uint64_t)rows * (uint64_t)d, sizeof *last);
  float *log_probs = allocate_zeroed(2 * (uint64_t)n * (uint64_t)rows, sizeof *log_probs);
  ids[0] = m->size[START];
  if (n_target) memcpy(ids + 1, target, (size_t)n_target * sizeof *ids);
  for (int32_t v = 0; v < n; variants += 1 + *variants, v++) {
    KVCache *own = caches + 2 * (size_t)v * (size_t)layers, *cross = own + layers;
    Interventions interventions = {variants + 1, *variants};
    read[v] = (Group){.ids = source, .count = n_source, .cross = cross, .interventions = interventions};
    write[v] = (Group){.ids = ids, .count = rows, .self = own, .cross = cross, .interventions = interventions};
    for (int32_t r = 0; r < rows; r++)
      if (record || asked[2 * r] >= 0 || asked[2 * r + 1] >= 0) wanted[n_wanted++] = v * rows + r;
  }
  if (has_encoder(m)) encode(p, read, n), remember(p);
  decode(p, write, n);
  enter(record, "out", -1, "");
  for (int32_t first = 0; first < n_wanted; first += rows) {
    int32_t count = n_wanted - first < rows ? n_wanted - first : rows;
    for (int32_t i = 0; i < count; i++) memcpy(last + (size_t)i * (size_t)d, p->x + (size_t)wanted[first + i] * (size_t)d, (size_t)d * sizeof *last);
    logits(p, &m->out, last, count, some);
    for (int32_t i = 0; i < count; i++) {
      float *row = some + (size_t)i * (size_t)width, top = largest(row, width), log_total = log_(exp_sum(row, width, top, NULL));
      for (int32_t k = 0; k < 2; k++) {
        int32_t token = asked[2 * (wanted[first + i] % rows) + k];
        log_probs[2 * wanted[first + i] + k] = token < 0 ? 0 : (row[token] - top) - log_total;
      }
      if (record) softmax(row, width);
    }
  }
  tap(record, "prob", "", -1, some, rows, m->out.out, width);
  unlink_block(block_of(log_probs)); // the host releases it
  release_all(ids);
  return log_probs;
}

// Classify with an encoder alone: the mean of the memory's rows -> linear layer -> class probabilities. Returns NULL if
// the input is rejected or memory runs out.
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
  unlink_block(block_of(some)); // the host releases it
  release_all(pooled);
  return some;
}
