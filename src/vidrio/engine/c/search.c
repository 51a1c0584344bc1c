// From logits to a translation: greedy, beam and sampling, as in search.py. Many sentences share the decoder's products;
// each goes on as if it were alone, and the next one begins when there is room.

enum {
  MOST_BEAM = 64,
  ADMITTED = 512,     // source tokens that are encoded together, but at least one sentence
  LOGITS_AT_ONCE = 32 // rows of logits that are made before they are read: more would leave the processor's cache
};

typedef struct {
  int32_t length;   // of ids, the forced prefix included
  int32_t *ids;     // as many as max_length has room for
  float *log_probs; // of each
  int32_t *looked;  // of each its row in the sentence's attention
  double total;     // log p
  uint64_t random;  // the state of its generator
  KVCache *self;      // the decoder's keys and values, of each layer; NULL where it goes no further
  double score;     // of one that goes no further
  int32_t ended;
} Hypothesis;

struct Sentence {
  Options options;
  int32_t *source, n_source, *prefix, n_prefix, *suppressed, n_suppressed;
  KVCache *cross; // of each layer
  Hypothesis *alive, *finished;
  int32_t n_alive, n_finished, best_ended, done;
  float *attention; // a row of n_source for each token that a hypothesis had to choose
  int32_t attention_rows, attention_room;
  Sentence *next; // of those that are done
};

struct Search {
  Pass pass;
  int32_t rows;
  Sentence **sentences; // those that have begun, and after them those that wait, in the order in which they came
  int32_t n_begun, n_sentences, room;
  Sentence *done;
  float *logits;
  int32_t logits_room;
};

// --- a hypothesis -----------------------------------------------------------------------------------------------------

static Hypothesis hypothesis_new(const Model *m, const Sentence *s, uint64_t random) {
  size_t most = (size_t)s->options.max_length;
  Hypothesis h = {.length = s->n_prefix, .ids = need(most * 4), .log_probs = need(most * 4), .looked = need(most * 4),
                  .self = need((size_t)m->size[N_DECODER_LAYERS] * sizeof(KVCache)), .random = random};
  if (s->n_prefix) memcpy(h.ids, s->prefix, (size_t)s->n_prefix * 4);
  return h;
}

// Another that has written the same.
static Hypothesis hypothesis_copy(const Sentence *s, const Hypothesis *from) {
  size_t most = (size_t)s->options.max_length * 4;
  Hypothesis h = *from;
  h.ids = copy_of(from->ids, most);
  h.log_probs = copy_of(from->log_probs, most);
  h.looked = copy_of(from->looked, most);
  h.self = NULL;
  return h;
}

// Another that goes on from the same keys and values.
static Hypothesis hypothesis_branch(const Model *m, const Sentence *s, const Hypothesis *from) {
  Hypothesis h = hypothesis_copy(s, from);
  h.self = need((size_t)m->size[N_DECODER_LAYERS] * sizeof(KVCache));
  for (int32_t l = 0; l < m->size[N_DECODER_LAYERS]; l++) h.self[l] = cache_share(&from->self[l]);
  return h;
}

static void hypothesis_drop(Pass *p, Hypothesis *h) {
  for (int32_t l = 0; h->self && l < p->m->size[N_DECODER_LAYERS]; l++) cache_drop(&p->pages, &h->self[l]);
  let_go(h->ids), let_go(h->log_probs), let_go(h->looked), let_go(h->self);
  *h = (Hypothesis){0};
}

static void append_token(Hypothesis *h, int32_t token, float log_prob, int32_t looked) {
  h->ids[h->length] = token;
  h->log_probs[h->length] = log_prob;
  h->looked[h->length++] = looked;
  h->total = h->total + (double)log_prob;
}

// --- what may be chosen -----------------------------------------------------------------------------------------------

// The tokens that would complete n tokens that stand in the hypothesis already.
static void forbid_repeats(const Hypothesis *h, int32_t n, float *row) {
  for (int32_t i = 0; n > 0 && i + n <= h->length; i++) {
    int32_t same = 0;
    while (same < n - 1 && h->ids[i + same] == h->ids[h->length - n + 1 + same]) same++;
    if (same == n - 1) row[h->ids[i + n - 1]] = -INFINITY;
  }
}

static void restrict_row(const Model *m, const Sentence *s, const Hypothesis *h, float *row) {
  forbid_repeats(h, s->options.no_repeat_ngram, row);
  for (int32_t i = 0; i < s->n_suppressed; i++) row[s->suppressed[i]] = -INFINITY;
  if (h->length < s->options.min_length && m->size[END] >= 0) row[m->size[END]] = -INFINITY;
}

// The places of the n largest numbers, largest first, equals by place; those of -infinity are never among them.
static int32_t best_places(const float *row, int32_t width, int32_t n, int32_t *places) {
  int32_t found = 0;
  float least = -INFINITY;
  for (int32_t i = 0; i < width; i += LANES) {
    Bits larger = (Bits)(load(row + i) > least);
    uint32_t any = 0, t[LANES];
    memcpy(t, &larger, sizeof t);
    for (int k = 0; k < LANES; k++) any |= t[k];
    if (!any) continue;
    for (int32_t v = i; v < i + LANES; v++) {
      if (!(row[v] > least)) continue;
      int32_t at = found < n ? found++ : n - 1;
      for (; at && row[v] > row[places[at - 1]]; at--) places[at] = places[at - 1];
      places[at] = v;
      if (found == n) least = row[places[n - 1]];
    }
  }
  return found;
}

// SplitMix64: the same draws everywhere.
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

// One token at random, after temperature, top-k and top-p, in this order. Without the two the order is that of the ids.
static int32_t draw(const Options *o, const float *row, int32_t width, float most, uint64_t *state) {
  float *p = need((size_t)width * sizeof *p), total = 0, sum = 0;
  Chance *chances = need((size_t)width * sizeof *chances);
  int32_t n = 0, chosen = -1;
  for (int32_t i = 0; i < width; i += LANES) store(p + i, exp_((load(row + i) - most) / o->temperature));
  for (int32_t v = 0; v < width; v++)
    if (row[v] > -INFINITY) chances[n++] = (Chance){row[v], p[v], v};
  int truncated = (o->top_k > 0 && o->top_k < n) || o->top_p < 1;
  if (truncated) qsort(chances, (size_t)n, sizeof *chances, likelier);
  if (o->top_k > 0 && o->top_k < n) n = o->top_k;
  for (int32_t i = 0; i < n; i++) total = total + chances[i].p;
  if (o->top_p < 1) {
    float enough = o->top_p * total, before = 0;
    int32_t kept = 0;
    while (kept < n && (kept == 0 || before < enough)) before = before + chances[kept++].p;
    n = kept;
    total = before;
  }
  float u = random_number(state) * total;
  for (int32_t i = 0; i < n && !(sum > u); i++) {
    sum = sum + chances[i].p;
    chosen = chances[i].token;
  }
  let_go(p), let_go(chances);
  return chosen;
}

// --- a step -----------------------------------------------------------------------------------------------------------

static double score_of(double total, int32_t length, float penalty) {
  float power = penalty == 1 ? (float)length : penalty == 0 ? 1.0f : exp_of(penalty * log_((float)length));
  return total / (double)power;
}

// A token after a hypothesis; its row of attention counts from the first of the step.
typedef struct { int32_t hypothesis, token; float log_prob; double total; } Candidate;

// A hypothesis that goes no further: a last token ends or fills it, or nothing may be chosen (NULL) and it is cut.
static void finish(const Model *m, Sentence *s, const Hypothesis *h, const Candidate *last, int32_t first_looked) {
  Hypothesis *f = &s->finished[s->n_finished++];
  *f = hypothesis_copy(s, h);
  if (last) append_token(f, last->token, last->log_prob, first_looked + last->hypothesis);
  f->ended = last && last->token == m->size[END];
  f->score = score_of(f->total, f->length ? f->length : 1, s->options.length_penalty);
}

// The chosen ones are the sentence's hypotheses from now on.
static void go_on(Search *search, Sentence *s, const Candidate *chosen, int32_t n, int32_t first_looked) {
  Hypothesis *next = need((size_t)n * sizeof *next);
  for (int32_t i = 0; i < n; i++) {
    Hypothesis *parent = &s->alive[chosen[i].hypothesis];
    int last = 1; // the last that goes on from a hypothesis takes what it has, the others a copy
    for (int32_t k = i + 1; k < n; k++) last &= chosen[k].hypothesis != chosen[i].hypothesis;
    next[i] = last ? *parent : hypothesis_branch(search->pass.m, s, parent);
    if (last) *parent = (Hypothesis){0};
    append_token(&next[i], chosen[i].token, chosen[i].log_prob, first_looked + chosen[i].hypothesis);
  }
  for (int32_t i = 0; i < s->n_alive; i++) hypothesis_drop(&search->pass, &s->alive[i]);
  let_go(s->alive);
  s->alive = next;
  s->n_alive = n;
}

// The 2 * beam best continuations of all hypotheses, best first; equals by hypothesis, then by rank within it.
static int32_t find_candidates(const Model *m, Sentence *s, float *rows, Candidate *found) {
  int32_t width = logits_width(m), beam = s->options.beam, n = 0;
  int32_t most = beam == 1 ? 1 : 2 * beam, places[2 * MOST_BEAM];
  for (int32_t i = 0; i < s->n_alive; i++) {
    float *row = rows + (size_t)i * (size_t)width;
    restrict_row(m, s, &s->alive[i], row);
    int32_t count = best_places(row, width, most, places);
    if (!count) finish(m, s, &s->alive[i], NULL, 0);
    if (!count) continue;
    float top = row[places[0]], log_total = log_sum(row, width, top);
    for (int32_t k = 0; k < count; k++) {
      float log_prob = (row[places[k]] - top) - log_total;
      Candidate c = {i, places[k], log_prob, s->alive[i].total + (double)log_prob};
      int32_t at = n < most ? n++ : most;
      if (at == most && !(c.total > found[most - 1].total)) break; // the others of this hypothesis are no better
      if (at == most) at = most - 1;
      for (; at && c.total > found[at - 1].total; at--) found[at] = found[at - 1];
      found[at] = c;
    }
  }
  return n;
}

// The `beam` best go on; what ended or was cut is finished, and the next best step in, so that the beam stays full.
static void step_beam(Search *search, Sentence *s, float *rows, int32_t first_looked) {
  const Model *m = search->pass.m;
  const Options *o = &s->options;
  Candidate found[2 * MOST_BEAM + 1], chosen[MOST_BEAM];
  int32_t n = find_candidates(m, s, rows, found), end = m->size[END], depth = s->alive[0].length;
  int32_t inside = n < o->beam ? n : o->beam, last_step = depth + 1 == o->max_length, over = 0, n_chosen = 0;
  for (int32_t i = 0; i < inside; i++) {
    // Right after a forced prefix, ending is for the likeliest only: short results would crowd out the others.
    if (depth == s->n_prefix && depth > 0 && found[i].token == end && i) continue;
    if (last_step || found[i].token == end) {
      over++;
      s->best_ended |= !i;
      finish(m, s, &s->alive[found[i].hypothesis], &found[i], first_looked);
    } else chosen[n_chosen++] = found[i];
  }
  for (int32_t i = o->beam; i < n && over && !last_step; i++)
    if (found[i].token != end) chosen[n_chosen++] = found[i], over--;
  // Without a length penalty no longer hypothesis can beat a leader that has ended.
  int32_t enough = o->length_penalty == 0 && s->best_ended ? o->n_best : o->beam;
  go_on(search, s, chosen, s->n_finished < enough ? n_chosen : 0, first_looked);
}

// Each hypothesis goes on by itself, with a token that is drawn.
static void step_draws(Search *search, Sentence *s, float *rows, int32_t first_looked) {
  const Model *m = search->pass.m;
  int32_t width = logits_width(m), n_chosen = 0, likeliest;
  Candidate chosen[MOST_BEAM];
  for (int32_t i = 0; i < s->n_alive; i++) {
    Hypothesis *h = &s->alive[i];
    float *row = rows + (size_t)i * (size_t)width;
    restrict_row(m, s, h, row);
    if (!best_places(row, width, 1, &likeliest)) {
      finish(m, s, h, NULL, 0);
      continue;
    }
    float top = row[likeliest];
    Candidate c = {.hypothesis = i, .token = draw(&s->options, row, width, top, &h->random)};
    c.log_prob = (row[c.token] - top) - log_sum(row, width, top);
    if (c.token == m->size[END] || h->length + 1 == s->options.max_length) finish(m, s, h, &c, first_looked);
    else chosen[n_chosen++] = c;
  }
  go_on(search, s, chosen, n_chosen, first_looked);
}

// Best first; equals stay in the order in which they were found.
static void rank(Sentence *s) {
  for (int32_t i = 1; i < s->n_finished; i++)
    for (int32_t k = i; k && s->finished[k].score > s->finished[k - 1].score; k--) {
      Hypothesis f = s->finished[k];
      s->finished[k] = s->finished[k - 1];
      s->finished[k - 1] = f;
    }
}

// What only its steps have needed.
static void let_go_of_steps(Pass *p, Sentence *s) {
  for (int32_t i = 0; i < s->n_alive; i++) hypothesis_drop(p, &s->alive[i]);
  for (int32_t l = 0; s->cross && l < p->m->size[N_DECODER_LAYERS]; l++) cache_drop(&p->pages, &s->cross[l]);
  let_go(s->alive), let_go(s->cross);
  s->alive = NULL;
  s->cross = NULL;
  s->n_alive = 0;
}

// --- many sentences ---------------------------------------------------------------------------------------------------

static int32_t hypotheses_of(const Sentence *s) { return s->options.sampling ? s->options.n_best : s->options.beam; }

static void begin(const Model *m, Sentence *s) {
  s->cross = need((size_t)m->size[N_DECODER_LAYERS] * sizeof(KVCache));
  s->n_alive = s->options.sampling ? s->options.n_best : 1;
  s->alive = need((size_t)s->n_alive * sizeof *s->alive);
  for (int32_t h = 0; h < s->n_alive; h++) s->alive[h] = hypothesis_new(m, s, ((uint64_t)s->options.seed << 32) + (uint64_t)h);
}

// Let sentences begin while there is room for their hypotheses; their sources are encoded together.
static void admit(Search *search) {
  const Model *m = search->pass.m;
  int32_t rows = 0, tokens = 0, first = search->n_begun;
  for (int32_t i = 0; i < first; i++) rows += hypotheses_of(search->sentences[i]);
  // A few at a time make small products: wait until a fourth of the rows is free.
  if (rows && search->rows - rows < search->rows / 4) return;
  for (; search->n_begun < search->n_sentences; search->n_begun++) {
    Sentence *s = search->sentences[search->n_begun];
    if (rows && (rows + hypotheses_of(s) > search->rows || (search->n_begun > first && tokens + s->n_source > ADMITTED))) break;
    rows += hypotheses_of(s);
    tokens += s->n_source;
    begin(m, s);
  }
  int32_t n = search->n_begun - first;
  if (!n || !has_encoder(m)) return;
  Source *sources = need((size_t)n * sizeof *sources);
  for (int32_t i = 0; i < n; i++) {
    const Sentence *s = search->sentences[first + i];
    sources[i] = (Source){s->source, s->n_source, s->cross};
  }
  encode(&search->pass, sources, n);
  remember(&search->pass, sources);
  let_go(sources);
}

// Rows of attention for `count` tokens.
static float *attention_rows(Sentence *s, int32_t count) {
  size_t width = (size_t)s->n_source;
  s->attention = with_room(s->attention, s->attention_rows + count, &s->attention_room, width * sizeof(float));
  s->attention_rows += count;
  return s->attention + (size_t)(s->attention_rows - count) * width;
}

// The tokens that each hypothesis of a sentence decodes now: its latest, or at first the start and the forced prefix.
static int32_t tokens_now(const Sentence *s) { return s->alive[0].self[0].length ? 1 : 1 + s->n_prefix; }

// What a sentence's hypotheses decode now; `tokens` is where their ids are written.
static void write_decodings(const Model *m, Sentence *s, int32_t *tokens, Decoding *some) {
  int32_t count = tokens_now(s), fresh = !s->alive[0].self[0].length;
  float *looked = s->n_source ? attention_rows(s, count * s->n_alive) : NULL;
  for (int32_t h = 0; h < s->n_alive; h++, tokens += count) {
    const Hypothesis *alive = &s->alive[h];
    tokens[0] = fresh ? m->size[START] : alive->ids[alive->length - 1];
    if (fresh && s->n_prefix) memcpy(tokens + 1, s->prefix, (size_t)s->n_prefix * 4);
    some[h] = (Decoding){tokens, count, alive->self, s->cross, looked ? looked + (size_t)(h * count) * (size_t)s->n_source : NULL};
  }
}

// The first row of attention of the tokens to be chosen now. Where a forced prefix was decoded with them, its rows belong
// to its own tokens, and theirs are put after all of these, one for each hypothesis.
static int32_t rows_of_choices(Sentence *s, int32_t count) {
  int32_t first = s->attention_rows - count * s->n_alive;
  for (int32_t h = 0; count > 1 && s->n_source && h < s->n_alive; h++) {
    for (int32_t t = 0; t < s->n_prefix; t++) s->alive[h].looked[t] = first + h * count + t;
    float *row = attention_rows(s, 1);
    memcpy(row, s->attention + (size_t)(first + h * count + count - 1) * (size_t)s->n_source, (size_t)s->n_source * sizeof *row);
  }
  return s->attention_rows - s->n_alive;
}

// Sentences that nothing goes on from are done; the others stay in their order.
static void sort_out(Search *search) {
  int32_t left = 0, begun = 0;
  for (int32_t i = 0; i < search->n_sentences; i++) {
    Sentence *s = search->sentences[i];
    if (i >= search->n_begun || s->n_alive) {
      begun += i < search->n_begun;
      search->sentences[left++] = s;
      continue;
    }
    let_go_of_steps(&search->pass, s);
    rank(s);
    s->done = 1;
    s->next = search->done;
    search->done = s;
  }
  search->n_sentences = left;
  search->n_begun = begun;
}

// One step of all hypotheses that are alive.
static void step(Search *search) {
  const Model *m = search->pass.m;
  int32_t n = 0, room = 0, d = m->size[D_MODEL], width = logits_width(m);
  admit(search);
  for (int32_t i = 0; i < search->n_begun; i++) {
    n += search->sentences[i]->n_alive;
    room += search->sentences[i]->n_alive * tokens_now(search->sentences[i]);
  }
  Decoding *some = need((size_t)n * sizeof *some);
  int32_t *tokens = need((size_t)room * sizeof *tokens);
  n = room = 0;
  for (int32_t i = 0; i < search->n_begun; i++) {
    Sentence *s = search->sentences[i];
    int32_t count = tokens_now(s);
    write_decodings(m, s, tokens + room, some + n);
    room += s->n_alive * count;
    n += s->n_alive;
  }
  decode(&search->pass, some, n);
  float *x = search->pass.x; // the last row of each hypothesis tells its next word
  for (int32_t i = 0, last = -1; i < n; i++) {
    last += some[i].count;
    memmove(x + (size_t)i * (size_t)d, x + (size_t)last * (size_t)d, (size_t)d * sizeof *x);
  }
  int32_t at = 0, first = 0, end = 0; // logits are there for the rows from first to end
  for (int32_t i = 0; i < search->n_begun; i++) {
    Sentence *s = search->sentences[i];
    if (at == end) {
      first = at;
      for (int32_t k = i; k < search->n_begun && (end == first || end - first + search->sentences[k]->n_alive <= LOGITS_AT_ONCE); k++)
        end += search->sentences[k]->n_alive;
      search->logits = with_room(search->logits, end - first, &search->logits_room, (size_t)width * sizeof(float));
      logits(&search->pass, x + (size_t)first * (size_t)d, end - first, search->logits);
    }
    float *rows = search->logits + (size_t)(at - first) * (size_t)width;
    int32_t looked = rows_of_choices(s, some[at].count);
    at += s->n_alive;
    if (s->options.sampling) step_draws(search, s, rows, looked);
    else step_beam(search, s, rows, looked);
  }
  sort_out(search);
  let_go(some), let_go(tokens);
}

// --- for the host -----------------------------------------------------------------------------------------------------

Search *search_new(const Model *m, int32_t rows) {
  Search *search = need(sizeof *search);
  search->pass = pass_new(m, NULL);
  search->rows = rows < 1 ? 1 : rows > 4096 ? 4096 : rows;
  return search;
}

static int are_tokens(const int32_t *ids, int32_t n, int32_t vocabulary) {
  for (int32_t i = 0; i < n; i++) if (ids[i] < 0 || ids[i] >= vocabulary) return 0;
  return n >= 0;
}

// Whether the decoder can be asked for this: there is something to read if it reads at all, and all of it is tokens.
static int can_translate(const Model *m, const int32_t *source, int32_t n_source, const int32_t *target, int32_t n_target) {
  const int32_t *c = m->size;
  return has_decoder(m) && c[START] >= 0 && (has_encoder(m) ? n_source > 0 : !n_source) && n_source <= c[MAX_POSITIONS] &&
         are_tokens(source, n_source, c[SOURCE_VOCABULARY]) && n_target < c[MAX_POSITIONS] && are_tokens(target, n_target, c[TARGET_VOCABULARY]);
}

Sentence *search_add(Search *search, const Options *o, const int32_t *source, int32_t n_source, const int32_t *prefix, int32_t n_prefix,
                     const int32_t *suppressed, int32_t n_suppressed) {
  const int32_t *c = search->pass.m->size;
  int fits = can_translate(search->pass.m, source, n_source, prefix, n_prefix) && are_tokens(suppressed, n_suppressed, c[TARGET_VOCABULARY]) &&
             o->max_length > n_prefix && o->max_length <= c[MAX_POSITIONS] && o->beam >= 1 && o->beam <= MOST_BEAM && o->n_best >= 1 &&
             o->n_best <= (o->sampling ? MOST_BEAM : o->beam) && o->no_repeat_ngram >= 0 && o->top_k >= 0 && o->top_p > 0 && o->temperature > 0 &&
             (!o->sampling || o->beam == 1);
  if (!fits) return NULL;
  Sentence *s = need(sizeof *s);
  *s = (Sentence){.options = *o, .source = copy_of(source, (size_t)n_source * 4), .n_source = n_source, .prefix = copy_of(prefix, (size_t)n_prefix * 4),
                  .n_prefix = n_prefix, .suppressed = copy_of(suppressed, (size_t)n_suppressed * 4), .n_suppressed = n_suppressed,
                  .finished = need((size_t)(3 * (o->beam > o->n_best ? o->beam : o->n_best)) * sizeof(Hypothesis))};
  search->sentences = with_room(search->sentences, search->n_sentences + 1, &search->room, sizeof *search->sentences);
  search->sentences[search->n_sentences++] = s;
  return s;
}

int32_t search_run(Search *search, int32_t steps) {
  while (steps-- > 0 && search->n_sentences) step(search);
  return search->n_sentences;
}

Sentence *search_next(const Search *search) { return search->done; }

int32_t sentence_count(const Sentence *s) {
  if (!s->done) return -1;
  return s->n_finished < s->options.n_best ? s->n_finished : s->options.n_best;
}

int32_t sentence_length(const Sentence *s, int32_t nth) { return nth >= 0 && nth < sentence_count(s) ? s->finished[nth].length : -1; }

int32_t sentence_written(const Sentence *s, int32_t *ids, int32_t room) {
  if (!s->n_alive) return -1;
  int32_t n = s->alive[0].length < room ? s->alive[0].length : room;
  if (n) memcpy(ids, s->alive[0].ids, (size_t)n * 4);
  return s->alive[0].length;
}

int32_t sentence_read(const Sentence *s, int32_t nth, int32_t *ids, float *log_probs, float *attention, double *total) {
  if (sentence_length(s, nth) < 0) return -1;
  const Hypothesis *f = &s->finished[nth];
  size_t n = (size_t)f->length, width = (size_t)s->n_source;
  if (ids) memcpy(ids, f->ids, n * 4);
  if (log_probs) memcpy(log_probs, f->log_probs, n * 4);
  for (size_t t = 0; attention && width && t < n; t++) memcpy(attention + t * width, s->attention + (size_t)f->looked[t] * width, width * 4);
  if (total) total[0] = f->total, total[1] = f->score;
  return f->ended;
}

// Out of the search, done or not.
void search_drop(Search *search, Sentence *s) {
  if (s->done) {
    Sentence **at = &search->done;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
  } else {
    int32_t i = 0;
    while (search->sentences[i] != s) i++;
    search->n_begun -= i < search->n_begun;
    for (search->n_sentences--; i < search->n_sentences; i++) search->sentences[i] = search->sentences[i + 1];
    let_go_of_steps(&search->pass, s);
  }
  for (int32_t i = 0; i < s->n_finished; i++) hypothesis_drop(&search->pass, &s->finished[i]);
  let_go(s->source), let_go(s->prefix), let_go(s->suppressed), let_go(s->finished), let_go(s->attention), let_go(s);
}

void search_free(Search *search) {
  while (search->n_sentences) search_drop(search, search->sentences[search->n_sentences - 1]);
  while (search->done) search_drop(search, search->done);
  pass_free(&search->pass);
  let_go(search->logits), let_go(search->sentences), let_go(search);
}
