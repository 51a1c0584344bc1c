// Search, from logits to translations: greedy search, beam search and sampling, as in search.py. Many sentences share
// the decoder's products. No result depends on the other sentences. Waiting sentences start as soon as there is room.

enum { ADMITTED = 512 }; // maximum number of source tokens encoded together, unless it is a single sentence

typedef struct { int32_t id, row; float log_prob; } Token; // `row` is a row of the sentence's attention

enum { CUT, ENDED, NOT_A_NUMBER = -1 }; // how a hypothesis ends; NOT_A_NUMBER: the model computed NaN

typedef struct {
  int32_t length, ended;
  double total, score; // `total` is log p; `score` is set when the hypothesis ends
  Token *tokens;       // has capacity for max_length tokens, including a forced prefix
  uint64_t random;     // the state of the hypothesis's random number generator
  KVCache *self;       // the decoder's keys and values for each layer; NULL once the hypothesis has ended
} Hypothesis;

typedef struct {
  Options options;
  int32_t *source, n_source, *prefix, n_prefix, *suppressed, n_suppressed;
  int32_t *shortlist;  // the allowed tokens, in ascending order; NULL if all are allowed
  const Matrix *out;   // has one column per allowed token
  Interventions interventions;
  enum { WAITS, READ, BEGUN, DONE } state; // READ: the source has been encoded
  KVCache *cross; // one per layer
  Hypothesis *alive, *finished; // `finished` is sorted, best first; ties stay in the order in which they were found
  int32_t n_alive, n_finished, best_ended;
  float *attention; // n_source weights for each token that a hypothesis had to choose
  int32_t attention_rows, attention_room;
  int32_t first_row, row_stride; // the attention row of the first hypothesis in this step, and the distance to the next
} Sentence;

typedef struct {
  Pass pass;
  int32_t rows;
  Sentence **sentences; // in the order of arrival
  int32_t n_sentences, room;
  float *logits;
  int32_t logits_room;
} Search;

// A candidate continuation: a hypothesis and its next token.
typedef struct { int32_t hypothesis, token; float log_prob; double total; } Candidate;

// --- a hypothesis -----------------------------------------------------------------------------------------------------

// Copy a hypothesis and append a token, unless `last` is NULL. If `layers` > 0, the copy shares the keys and values.
static Hypothesis extended(const Sentence *s, const Hypothesis *from, const Candidate *last, int32_t layers) {
  Hypothesis h = *from;
  h.tokens = copy_of(from->tokens, (uint64_t)s->options.max_length, sizeof(Token));
  h.self = layers ? allocate_zeroed((uint64_t)layers, sizeof *h.self) : NULL;
  for (int32_t l = 0; l < layers; l++) h.self[l] = cache_share(&from->self[l]);
  if (!last) return h;
  h.tokens[h.length++] = (Token){last->token, s->first_row + last->hypothesis * s->row_stride, last->log_prob};
  h.total = last->total;
  return h;
}

static void drop_caches(const Pass *p, KVCache *layers) {
  for (int32_t l = 0; layers && l < p->m->size[N_DECODER_LAYERS]; l++) cache_drop(&layers[l]);
  release(layers);
}

static void hypothesis_drop(const Pass *p, Hypothesis *h) {
  drop_caches(p, h->self);
  release(h->tokens);
}

// --- choosing a token ------------------------------------------------------------------------------------------------

static int32_t token_at(const Sentence *s, int32_t place) { return s->shortlist ? s->shortlist[place] : place; }

static void forbid(const Sentence *s, float *row, int32_t token) {
  int32_t low = 0, high = s->out->out;
  if (!s->shortlist) row[token] = -INFINITY;
  while (s->shortlist && low < high) {
    int32_t middle = (low + high) / 2;
    if (s->shortlist[middle] == token) row[middle] = -INFINITY;
    if (s->shortlist[middle] < token) low = middle + 1;
    else high = middle;
  }
}

static void restrict_row(const Model *m, const Sentence *s, const Hypothesis *h, float *row) {
  int32_t n = s->options.no_repeat_ngram;
  for (int32_t i = 0; n > 0 && i + n <= h->length; i++) { // tokens that would repeat an n-gram
    int32_t same = 0;
    while (same < n - 1 && h->tokens[i + same].id == h->tokens[h->length - n + 1 + same].id) same++;
    if (same == n - 1) forbid(s, row, h->tokens[i + n - 1].id);
  }
  for (int32_t i = 0; i < s->n_suppressed; i++) forbid(s, row, s->suppressed[i]);
  if (h->length < s->options.min_length && m->size[END] >= 0) forbid(s, row, m->size[END]);
}

// Find the indices of the n largest numbers, largest first, with ties broken by index. Skips -infinity.
static int32_t best_places(const float *row, int32_t width, int32_t n, int32_t *places) {
  int32_t found = 0;
  float least = -INFINITY;
  for (int32_t i = 0; i < width; i += LANES) {
    Bits larger = (Bits)(load(row + i) > least);
    uint32_t any = 0, t[LANES];
    memcpy(t, &larger, sizeof t);
    for (int k = 0; k < LANES; k++) any |= t[k];
    for (int32_t v = i; any && v < i + LANES; v++) {
      if (!(row[v] > least)) continue;
      int32_t at = found < n ? found++ : n - 1;
      for (; at && row[v] > row[places[at - 1]]; at--) places[at] = places[at - 1];
      places[at] = v;
      if (found == n) least = row[places[n - 1]];
    }
  }
  return found;
}

// SplitMix64, which gives the same samples on every platform.
static float random_number(uint64_t *state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return (float)((z ^ (z >> 31)) >> 40) * 0x1p-24f;
}

typedef struct { float logit, p; int32_t token; } Chance;

static int likelier(const void *a, const void *b) {
  const Chance *x = a, *y = b;
  return x->logit != y->logit ? (x->logit < y->logit ? 1 : -1) : x->token - y->token;
}

// Sample a token after applying temperature, top-k and top-p, in this order. Without top-k and top-p, tokens are
// ordered by id.
static int32_t draw(const Options *o, const float *row, int32_t width, float most, uint64_t *state) {
  Chance *chances = allocate_zeroed((uint64_t)width, sizeof *chances);
  float total = 0, likeliest = 0, sum = 0;
  int32_t n = 0, kept = 0, chosen = -1;
  Lanes p = {0};
  for (int32_t v = 0; v < width; v++) {
    if (v % LANES == 0) p = exp_((load(row + v) - most) / o->temperature);
    if (row[v] > -INFINITY) chances[n++] = (Chance){row[v], p[v % LANES], v};
  }
  int is_truncated = o->top_k > 0 || o->top_p < 1;
  if (is_truncated) qsort(chances, (size_t)n, sizeof *chances, likelier);
  if (o->top_k > 0 && o->top_k < n) n = o->top_k;
  for (int32_t i = 0; i < n; i++) total = total + chances[i].p;
  while (kept < n && (!is_truncated || !kept || likeliest < o->top_p * total)) likeliest = likeliest + chances[kept++].p;
  float u = random_number(state) * likeliest;
  for (int32_t i = 0; i < kept && !(sum > u); i++) sum = sum + chances[i].p, chosen = chances[i].token;
  release(chances);
  return chosen;
}

// --- a step -----------------------------------------------------------------------------------------------------------

static double score_of(double total, int32_t length, float penalty) {
  float power = penalty == 1 ? (float)length : penalty == 0 ? 1.0f : exp_(all(penalty * log_((float)length)))[0];
  return total / (double)power;
}

// Finish a hypothesis. Either `last` ends it or fills its capacity, or no token is allowed (NULL) and it is cut off.
static void finish(const Model *m, Sentence *s, const Hypothesis *h, const Candidate *last) {
  Hypothesis f = extended(s, h, last, 0);
  f.ended = last && last->token == m->size[END];
  f.score = score_of(f.total, f.length ? f.length : 1, s->options.length_penalty);
  int32_t at = s->n_finished++;
  for (; at && f.score > s->finished[at - 1].score; at--) s->finished[at] = s->finished[at - 1];
  s->finished[at] = f;
}

// Replace the sentence's hypotheses with the chosen continuations.
static void go_on(const Pass *p, Sentence *s, const Candidate *chosen, int32_t n) {
  Hypothesis *next = allocate_zeroed((uint64_t)n, sizeof *next);
  for (int32_t i = 0; i < n; i++) next[i] = extended(s, &s->alive[chosen[i].hypothesis], &chosen[i], p->m->size[N_DECODER_LAYERS]);
  for (int32_t i = 0; i < s->n_alive; i++) hypothesis_drop(p, &s->alive[i]);
  release(s->alive);
  s->alive = next, s->n_alive = n;
}

// Give up on a sentence, because no token can be chosen after NaN. The hypothesis becomes the only result.
static int32_t give_up(const Pass *p, Sentence *s, const Hypothesis *h) {
  while (s->n_finished) hypothesis_drop(p, &s->finished[--s->n_finished]);
  finish(p->m, s, h, NULL);
  s->finished[0].ended = NOT_A_NUMBER;
  go_on(p, s, NULL, 0);
  return 0;
}

static int has_nan(const float *row, int32_t width) {
  int32_t v = 0;
  while (v < width && row[v] == row[v]) v++;
  return v < width;
}

// Find the 2 * beam best continuations of all hypotheses, or sample one for each hypothesis. They are sorted, best
// first, with ties broken by hypothesis, and then by the token's rank.
static int32_t find_candidates(const Pass *p, Sentence *s, float *row, Candidate *found) {
  const Model *m = p->m;
  const Options *o = &s->options;
  int32_t width = in_lanes(s->out->out), most = o->sampling ? o->n_best : o->beam == 1 ? 1 : 2 * o->beam, n = 0, places[2 * LARGEST_BEAM];
  for (int32_t i = 0; i < s->n_alive; i++, row += width) {
    Hypothesis *h = &s->alive[i];
    restrict_row(m, s, h, row);
    int32_t count = best_places(row, width, o->sampling ? 1 : most, places);
    if (!count && has_nan(row, width)) return give_up(p, s, h);
    if (!count) finish(m, s, h, NULL);
    if (!count) continue;
    float top = row[places[0]], total = exp_sum(row, width, top, NULL), log_total = log_(total);
    if (total != total) return give_up(p, s, h); // a logit is NaN or infinite
    if (o->sampling) places[0] = draw(o, row, width, top, &h->random);
    for (int32_t k = 0; k < count; k++) {
      float log_prob = (row[places[k]] - top) - log_total;
      Candidate c = {i, token_at(s, places[k]), log_prob, h->total + (double)log_prob};
      if (n == most && !(c.total > found[n - 1].total)) break; // the remaining tokens of this hypothesis are no better
      int32_t at = n < most ? n++ : most - 1;
      for (; at && c.total > found[at - 1].total; at--) found[at] = found[at - 1];
      found[at] = c;
    }
  }
  return n;
}

// Continue with the `beam` best candidates, or with all samples. Candidates that end or reach the maximum length are
// finished, and the next best candidates take their places, so that the beam stays full.
static void choose_tokens(Pass *p, Sentence *s, float *rows) {
  const Options *o = &s->options;
  Candidate found[2 * LARGEST_BEAM], chosen[LARGEST_BEAM];
  int32_t depth = s->alive[0].length, n = find_candidates(p, s, rows, found), end = p->m->size[END], over = 0, n_chosen = 0;
  int32_t inside = o->sampling || n < o->beam ? n : o->beam, is_last = depth + 1 == o->max_length;
  for (int32_t i = 0; i < inside; i++) {
    // Directly after a forced prefix, only the best candidate may end; otherwise, short results would crowd out the
    // rest.
    if (!o->sampling && i && depth && depth == s->n_prefix && found[i].token == end) continue;
    if (!is_last && found[i].token != end) {
      chosen[n_chosen++] = found[i];
      continue;
    }
    over++;
    s->best_ended |= !i;
    finish(p->m, s, &s->alive[found[i].hypothesis], &found[i]);
  }
  for (int32_t i = inside; i < n && over && !is_last; i++)
    if (found[i].token != end) chosen[n_chosen++] = found[i], over--;
  // Without a length penalty, no longer hypothesis can beat a finished hypothesis that was the best candidate.
  int32_t enough = o->sampling || (o->length_penalty == 0 && s->best_ended) ? o->n_best : o->beam;
  go_on(p, s, chosen, s->n_finished < enough ? n_chosen : 0);
}

// --- many sentences ---------------------------------------------------------------------------------------------------

// Free everything that is needed only while a sentence is being decoded.
static void release_steps(const Pass *p, Sentence *s) {
  for (int32_t i = 0; i < s->n_alive; i++) hypothesis_drop(p, &s->alive[i]);
  drop_caches(p, s->cross);
  release(s->alive);
  s->alive = NULL, s->cross = NULL, s->n_alive = 0;
}

static int32_t hypotheses_of(const Sentence *s) { return s->options.sampling ? s->options.n_best : s->options.beam; }

static void begin(const Model *m, Sentence *s) {
  uint64_t layers = (uint64_t)m->size[N_DECODER_LAYERS];
  s->state = BEGUN;
  s->n_alive = s->options.sampling ? s->options.n_best : 1;
  s->alive = allocate_zeroed((uint64_t)s->n_alive, sizeof *s->alive);
  for (int32_t h = 0; h < s->n_alive; h++) {
    Token *tokens = allocate_zeroed((uint64_t)s->options.max_length, sizeof *tokens);
    for (int32_t t = 0; t < s->n_prefix; t++) tokens[t] = (Token){s->prefix[t], h * (s->n_prefix + 1) + t, 0};
    s->alive[h] = (Hypothesis){.tokens = tokens, .length = s->n_prefix, .self = allocate_zeroed(layers, sizeof(KVCache)),
                               .random = ((uint64_t)s->options.seed << 32) + (uint64_t)h};
  }
}

// Start sentences while there is room for their hypotheses. Their sources are encoded together. Waiting variants of the
// last sentence are encoded along with it, because they share rows.
static void admit(Search *search) {
  const Model *m = search->pass.m;
  int32_t rows = 0, tokens = 0, n = 0, has_room = 1;
  for (int32_t i = 0; i < search->n_sentences; i++) rows += search->sentences[i]->state == BEGUN ? hypotheses_of(search->sentences[i]) : 0;
  // Products with few rows are inefficient, so wait until a quarter of the rows is free.
  if (rows && search->rows - rows < search->rows / 4) return;
  Group *groups = allocate_zeroed((uint64_t)search->n_sentences, sizeof *groups);
  for (int32_t i = 0; i < search->n_sentences; i++) {
    Sentence *s = search->sentences[i];
    if (s->state == BEGUN || s->state == DONE) continue;
    Group reads = {.ids = s->source, .count = s->n_source, .interventions = s->interventions};
    int is_read = s->state == READ, fits = is_read || !n || tokens + s->n_source <= ADMITTED;
    has_room = has_room && (!rows || (fits && rows + hypotheses_of(s) <= search->rows));
    if (!has_room && (is_read || !n || !fits || !have_same_ids(&groups[n - 1], &reads))) break;
    if (!is_read) {
      reads.cross = s->cross = allocate_zeroed((uint64_t)m->size[N_DECODER_LAYERS], sizeof *s->cross);
      groups[n++] = reads, tokens += s->n_source, s->state = READ;
    }
    if (has_room) rows += hypotheses_of(s), begin(m, s);
  }
  if (n && has_encoder(m)) encode(&search->pass, groups, n), remember(&search->pass);
  release(groups);
}

// Store the next input tokens of a sentence's hypotheses in `tokens`: the latest token or, in the first step, the start
// token and the forced prefix. Each token gets an attention row, which shows how the token after it was chosen.
static int32_t write_groups(const Model *m, Sentence *s, int32_t *tokens, Group *groups) {
  int32_t is_first = !s->alive[0].self[0].length, count = is_first ? 1 + s->n_prefix : 1, first = s->attention_rows;
  s->attention_rows += count * s->n_alive;
  s->attention = grow(s->attention, s->attention_rows, &s->attention_room, (size_t)s->n_source * sizeof *s->attention);
  s->first_row = first + count - 1, s->row_stride = count;
  for (int32_t h = 0; h < s->n_alive; h++, tokens += count) {
    const Hypothesis *alive = &s->alive[h];
    tokens[0] = is_first ? m->size[START] : alive->tokens[alive->length - 1].id;
    if (count > 1) memcpy(tokens + 1, s->prefix, (size_t)s->n_prefix * sizeof *tokens);
    groups[h] = (Group){tokens, count, alive->self, s->cross, s->attention + (size_t)(first + h * count) * (size_t)s->n_source,
                        .interventions = s->interventions};
  }
  return count * s->n_alive;
}

// Compute the logits of all hypotheses, with one row per hypothesis and one column for each token that its sentence may
// choose. Sentences without shortlists share a product.
static void logits_of_all(Search *search) {
  Pass *p = &search->pass;
  const float *x = p->x;
  float *to = search->logits;
  for (int32_t i = 0, n = search->n_sentences; i < n;) {
    const Sentence *s = search->sentences[i++];
    int32_t rows = s->n_alive;
    for (; i < n && search->sentences[i]->out == s->out; i++) rows += search->sentences[i]->n_alive;
    if (rows) logits(p, s->out, x, rows, to);
    x += (size_t)rows * (size_t)p->m->size[D_MODEL], to += (size_t)rows * (size_t)in_lanes(s->out->out);
  }
}

// Run a step of all live hypotheses.
static void step(Search *search) {
  Pass *p = &search->pass;
  int64_t numbers = 0; // number of logits
  int32_t n = 0;
  uint64_t most = 0; // maximum number of tokens
  size_t d = (size_t)p->m->size[D_MODEL];
  admit(search);
  for (int32_t i = 0; i < search->n_sentences; i++) {
    const Sentence *s = search->sentences[i];
    n += s->n_alive, most += (uint64_t)s->n_alive * (uint64_t)(1 + s->n_prefix);
    numbers += (int64_t)s->n_alive * in_lanes(s->out->out);
  }
  Group *groups = allocate_zeroed((uint64_t)n, sizeof *groups), *g = groups;
  int32_t *tokens = allocate_zeroed(most, sizeof *tokens), *to = tokens;
  for (int32_t i = 0; i < search->n_sentences; i++) {
    Sentence *s = search->sentences[i];
    if (s->state != BEGUN) continue;
    to += write_groups(p->m, s, to, g);
    g += s->n_alive;
  }
  decode(p, groups, n);
  for (int32_t i = 0; i < n; i++) // the last row of each hypothesis predicts its next token
    memmove(p->x + (size_t)i * d, p->x + (size_t)(groups[i].first + groups[i].count - 1) * d, d * sizeof *p->x);
  search->logits = grow(search->logits, numbers / LANES, &search->logits_room, LANES * sizeof *search->logits);
  logits_of_all(search);
  float *rows = search->logits;
  for (int32_t i = 0; i < search->n_sentences; i++) {
    Sentence *s = search->sentences[i];
    if (s->state != BEGUN) continue;
    float *own = rows;
    rows += (size_t)s->n_alive * (size_t)in_lanes(s->out->out);
    choose_tokens(p, s, own);
    if (s->n_alive) continue;
    release_steps(p, s);
    s->state = DONE;
  }
  release(groups), release(tokens);
}

// --- for the host -----------------------------------------------------------------------------------------------------

// Create a search, which translates any number of sentences. The decoder processes up to `rows` hypotheses together,
// and the next sentence starts as soon as there is room.
Search *search_new(const Model *m, int32_t rows) {
  Search *search = new_owner(sizeof *search);
  if (!search) return NULL;
  search->pass = pass_new(m, NULL);
  search->rows = rows < 1 ? 1 : rows > 4096 ? 4096 : rows;
  return search;
}

static int are_tokens(const int32_t *ids, int32_t n, int32_t vocabulary) {
  for (int32_t i = 0; i < n; i++)
    if (ids[i] < 0 || ids[i] >= vocabulary) return 0;
  return n >= 0;
}

// Return whether a request is valid: there is a source if the model has an encoder, and all ids are tokens.
static int can_translate(const Model *m, const int32_t *source, int32_t n_source, const int32_t *target, int32_t n_target) {
  const int32_t *c = m->size;
  return has_decoder(m) && (has_encoder(m) ? n_source > 0 : !n_source) && n_source <= c[MAX_POSITIONS] &&
         are_tokens(source, n_source, c[SOURCE_VOCABULARY]) && n_target < c[MAX_POSITIONS] && are_tokens(target, n_target, c[TARGET_VOCABULARY]);
}

// Add a sentence. Returns NULL if it is rejected or memory runs out.
Sentence *search_add(Search *search, const int32_t *source, int32_t n_source, const Options *o, const int32_t *prefix, int32_t n_prefix,
                     const int32_t *suppressed, int32_t n_suppressed, const int32_t *interventions, int32_t n_interventions) {
  const int32_t *c = search->pass.m->size;
  int fits = can_translate(search->pass.m, source, n_source, prefix, n_prefix) && are_tokens(suppressed, n_suppressed, c[TARGET_VOCABULARY]) &&
             o->max_length > n_prefix && o->max_length <= c[MAX_POSITIONS] && o->beam >= 1 && o->beam <= LARGEST_BEAM && o->n_best >= 1 &&
             o->n_best <= (o->sampling ? LARGEST_BEAM : o->beam) && o->no_repeat_ngram >= 0 && o->top_k >= 0 && o->top_p > 0 && o->temperature > 0 &&
             (!o->sampling || o->beam == 1) && are_interventions(search->pass.m, (Interventions){interventions, n_interventions}, n_source);
  *problem = 0, owner = search;
  if (!fits) return NULL;
  if (RAN_OUT) return NULL;
  Sentence *s = allocate_zeroed(1, sizeof *s);
  *s = (Sentence){.options = *o, .n_source = n_source, .n_prefix = n_prefix, .n_suppressed = n_suppressed, .out = &search->pass.m->out};
  s->source = copy_of(source, (uint64_t)n_source, 4), s->prefix = copy_of(prefix, (uint64_t)n_prefix, 4);
  s->suppressed = copy_of(suppressed, (uint64_t)n_suppressed, 4);
  s->interventions = (Interventions){copy_of(interventions, (uint64_t)n_interventions, 4), n_interventions};
  s->finished = allocate_zeroed((uint64_t)(3 * (o->beam > o->n_best ? o->beam : o->n_best)), sizeof *s->finished);
  search->sentences = grow(search->sentences, search->n_sentences + 1, &search->room, sizeof *search->sentences);
  search->sentences[search->n_sentences++] = s;
  return s;
}

// Allow only these tokens, given in ascending order, after the prefix of a sentence that has not started yet. Returns 0
// if they are rejected or memory runs out.
int32_t sentence_shortlist(Search *search, Sentence *s, const int32_t *tokens, int32_t n) {
  const Model *m = search->pass.m;
  *problem = 0, owner = search;
  if (n < 1 || s->state != WAITS || s->shortlist || !are_tokens(tokens, n, m->size[TARGET_VOCABULARY])) return 0;
  for (int32_t i = 1; i < n; i++)
    if (tokens[i] <= tokens[i - 1]) return 0;
  if (RAN_OUT) return 0;
  Matrix *out = allocate_zeroed(1, sizeof *out);
  *out = some_columns(&m->out, tokens, n);
  s->shortlist = copy_of(tokens, (uint64_t)n, sizeof *tokens), s->out = out;
  return 1;
}

// Run at most `steps` steps. Returns the number of unfinished sentences, or -1 if memory runs out. In that case, the
// search is empty again.
int32_t search_run(Search *search, int32_t steps) {
  *problem = 0, owner = search;
  if (RAN_OUT) {
    release_owned(search);
    *search = (Search){.pass = pass_new(search->pass.m, NULL), .rows = search->rows};
    return -1;
  }
  for (;; step(search), steps--) {
    int32_t unfinished = 0;
    for (int32_t i = 0; i < search->n_sentences; i++) unfinished += search->sentences[i]->state != DONE;
    if (!unfinished || steps <= 0) return unfinished;
  }
}

// Return a finished sentence that has not been dropped yet, or NULL.
Sentence *search_next(const Search *search) {
  for (int32_t i = 0; i < search->n_sentences; i++)
    if (search->sentences[i]->state == DONE) return search->sentences[i];
  return NULL;
}

// Return a hypothesis of a finished sentence, counted from 0, best first, or NULL after the last. The host reads its
// length (including the end token), how it ended, log p and score; its tokens; and the attention rows they refer to.
const Hypothesis *sentence_found(const Sentence *s, int32_t nth) {
  return nth < s->n_finished && nth < s->options.n_best ? &s->finished[nth] : NULL;
}
const Token *hypothesis_tokens(const Hypothesis *h) { return h->tokens; }
const float *sentence_attention(const Sentence *s) { return s->attention; }

// Drop a sentence, whether it has finished or not.
void search_drop(Search *search, Sentence *s) {
  int32_t i = 0;
  while (search->sentences[i] != s) i++;
  for (search->n_sentences--; i < search->n_sentences; i++) search->sentences[i] = search->sentences[i + 1];
  release_steps(&search->pass, s);
  for (i = 0; i < s->n_finished; i++) hypothesis_drop(&search->pass, &s->finished[i]);
  if (s->shortlist) release_matrix((Matrix *)s->out);
  release(s->shortlist), release((void *)s->interventions.words), release(s->source), release(s->prefix), release(s->suppressed);
  release(s->finished), release(s->attention), release(s);
}

void search_free(Search *search) { release_all(search); }
