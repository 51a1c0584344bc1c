// From logits to a translation: greedy, beam and sampling, as in search.py. Many sentences share the decoder's products;
// each goes on as if it were alone, and the next one begins when there is room.

enum {
  MOST_BEAM = 64,
  ADMITTED = 512,     // source tokens that are encoded together, but at least one sentence
  LOGITS_AT_ONCE = 32 // rows of logits that are made before they are read: more would leave the processor's cache
};

typedef struct {
  int32_t length;       // of ids, the forced prefix included
  int32_t *ids;         // as many as max_length has room for
  float *log_probs;     // of each
  int32_t *looked;      // of each its row in the sentence's attention
  Cache *self;          // the decoder's, of each layer
  double total;         // log p
  uint64_t random;      // the state of its generator
} Hypothesis;

typedef struct { int32_t *ids, *looked, length, ended; float *log_probs; double total, score; } Finished;

typedef struct Sentence {
  struct Sentence *after; // the next that waits
  Options options;
  int32_t *source, n_source, *prefix, n_prefix, *suppressed, n_suppressed;
  Cache *cross; // of each layer
  Hypothesis *alive;
  Finished *finished;
  int32_t n_alive, n_finished, best_ended, done;
  float *attention; // a row of n_source for each token that a hypothesis had to choose
  int32_t attention_rows, attention_room;
  int32_t begun;
} Sentence;

struct Search {
  const Model *model;
  int32_t rows, room, unfinished;
  Sentence **sentences;              // by ticket; NULL: a ticket that is free
  Sentence *waiting, *last_waiting;  // in the order in which they came
  Sentence **active;                 // that have begun and are not done
  int32_t n_active, active_room;
  Pages pages;
  Scratch scratch;
  float *logits;
  int32_t logits_rows;
};

static void *copy_of(const void *from, size_t bytes) {
  void *to = need(bytes);
  return bytes ? memcpy(to, from, bytes) : to;
}

// --- a hypothesis -----------------------------------------------------------------------------------------------------

static Hypothesis hypothesis_new(const Model *m, const Sentence *s, uint64_t random) {
  size_t most = (size_t)s->options.max_length;
  Hypothesis h = {.length = s->n_prefix, .ids = need(most * 4), .log_probs = need(most * 4), .looked = need(most * 4),
                  .self = need((size_t)m->size[N_DECODER_LAYERS] * sizeof(Cache)), .random = random};
  if (s->n_prefix) memcpy(h.ids, s->prefix, (size_t)s->n_prefix * 4);
  return h;
}

static Hypothesis hypothesis_branch(const Model *m, const Sentence *s, const Hypothesis *from) {
  size_t most = (size_t)s->options.max_length * 4, layers = (size_t)m->size[N_DECODER_LAYERS];
  Hypothesis h = *from;
  h.ids = copy_of(from->ids, most);
  h.log_probs = copy_of(from->log_probs, most);
  h.looked = copy_of(from->looked, most);
  h.self = need(layers * sizeof(Cache));
  for (size_t l = 0; l < layers; l++) h.self[l] = cache_share(&from->self[l]);
  return h;
}

static void hypothesis_drop(Search *search, Hypothesis *h) {
  for (int32_t l = 0; h->self && l < search->model->size[N_DECODER_LAYERS]; l++) cache_drop(&search->pages, &h->self[l]);
  let_go(h->ids), let_go(h->log_probs), let_go(h->looked), let_go(h->self);
  *h = (Hypothesis){0};
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

// log of the sum of exp(x - most).
static float log_sum(const float *row, int32_t width, float most) {
  Lanes total = {0};
  for (int32_t i = 0; i < width; i += LANES) total = total + exp_(load(row + i) - most);
  return log_(fold(total));
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

// A hypothesis that goes no further: its last token ends it, or it is cut.
static void finish(const Model *m, Sentence *s, const Hypothesis *h, int32_t token, float log_prob, int32_t looked) {
  int32_t n = h->length + (token >= 0), room = h->length + 1;
  Finished *f = &s->finished[s->n_finished++];
  *f = (Finished){.ids = need((size_t)room * 4), .looked = need((size_t)room * 4), .log_probs = need((size_t)room * 4), .length = n, .ended = token >= 0 && token == m->size[END]};
  memcpy(f->ids, h->ids, (size_t)h->length * 4);
  memcpy(f->looked, h->looked, (size_t)h->length * 4);
  memcpy(f->log_probs, h->log_probs, (size_t)h->length * 4);
  if (token >= 0) f->ids[n - 1] = token, f->looked[n - 1] = looked, f->log_probs[n - 1] = log_prob;
  for (int32_t i = 0; i < n; i++) f->total += (double)f->log_probs[i];
  f->score = score_of(f->total, n ? n : 1, s->options.length_penalty);
}

static void append_token(Hypothesis *h, int32_t token, float log_prob, double total, int32_t looked) {
  h->ids[h->length] = token;
  h->log_probs[h->length] = log_prob;
  h->looked[h->length++] = looked;
  h->total = total;
}

typedef struct { int32_t hypothesis, token; float log_prob; double total; int over; } Candidate;

// The 2 * beam best continuations of all hypotheses, best first; equals by hypothesis, then by rank within it.
static int32_t find_candidates(const Search *search, Sentence *s, float *rows, Candidate *found) {
  int32_t width = logits_width(search->model), beam = s->options.beam, n = 0;
  int32_t most = beam == 1 ? 1 : 2 * beam, places[2 * MOST_BEAM];
  for (int32_t i = 0; i < s->n_alive; i++) {
    float *row = rows + (size_t)i * (size_t)width;
    restrict_row(search->model, s, &s->alive[i], row);
    int32_t count = best_places(row, width, most, places);
    if (!count) finish(search->model, s, &s->alive[i], -1, 0, 0); // nothing may be chosen: it is cut here
    if (!count) continue;
    float top = row[places[0]], log_total = log_sum(row, width, top);
    for (int32_t k = 0; k < count; k++) {
      float log_prob = (row[places[k]] - top) - log_total;
      Candidate c = {i, places[k], log_prob, s->alive[i].total + (double)log_prob, 0};
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
  const Model *m = search->model;
  const Options *o = &s->options;
  Candidate found[2 * MOST_BEAM + 1];
  int32_t n = find_candidates(search, s, rows, found), end = m->size[END], depth = s->alive[0].length;
  int32_t inside = n < o->beam ? n : o->beam, last_step = depth + 1 == o->max_length, over = 0;
  Hypothesis *next = need((size_t)o->beam * sizeof *next);
  int32_t n_next = 0, chosen[MOST_BEAM];
  for (int32_t i = 0; i < inside; i++) {
    Candidate *c = &found[i];
    // Right after a forced prefix, ending is for the likeliest only: short results would crowd out the others.
    if (depth == s->n_prefix && depth > 0 && c->token == end && i) continue;
    if (!last_step && c->token != end) {
      chosen[n_next++] = i;
      continue;
    }
    over++;
    if (!i) s->best_ended = 1;
    finish(m, s, &s->alive[c->hypothesis], c->token, c->log_prob, first_looked + c->hypothesis);
  }
  for (int32_t i = o->beam; i < n && over && !last_step; i++)
    if (found[i].token != end) chosen[n_next++] = i, over--;
  // Without a length penalty no longer hypothesis can beat a leader that has ended.
  int32_t enough = o->length_penalty == 0 && s->best_ended ? o->n_best : o->beam;
  if (s->n_finished >= enough) n_next = 0;
  for (int32_t i = 0; i < n_next; i++) {
    const Candidate *c = &found[chosen[i]];
    Hypothesis *parent = &s->alive[c->hypothesis];
    int last = 1; // the last that goes on from a hypothesis takes what it has, the others a copy
    for (int32_t k = i + 1; k < n_next; k++) last &= found[chosen[k]].hypothesis != c->hypothesis;
    next[i] = last ? *parent : hypothesis_branch(m, s, parent);
    if (last) *parent = (Hypothesis){0};
    append_token(&next[i], c->token, c->log_prob, c->total, first_looked + c->hypothesis);
  }
  for (int32_t i = 0; i < s->n_alive; i++) hypothesis_drop(search, &s->alive[i]);
  let_go(s->alive);
  s->alive = next;
  s->n_alive = n_next;
}

// One hypothesis each, that goes on with its likeliest token, or with one that is drawn.
static void step_each(Search *search, Sentence *s, float *rows, int32_t first_looked) {
  const Model *m = search->model;
  int32_t width = logits_width(m), left = 0;
  for (int32_t i = 0; i < s->n_alive; i++) {
    Hypothesis *h = &s->alive[i];
    float *row = rows + (size_t)i * (size_t)width;
    int32_t token = -1;
    restrict_row(m, s, h, row);
    float log_prob = 0;
    if (best_places(row, width, 1, &token)) {
      float top = row[token];
      if (s->options.sampling) token = draw(&s->options, row, width, top, &h->random);
      if (token >= 0) log_prob = (row[token] - top) - log_sum(row, width, top);
    }
    if (token < 0 || token == m->size[END] || h->length + 1 == s->options.max_length) {
      finish(m, s, h, token, log_prob, first_looked + i);
      hypothesis_drop(search, h);
    } else {
      append_token(h, token, log_prob, h->total + (double)log_prob, first_looked + i);
      if (left != i) s->alive[left] = *h;
      left++;
    }
  }
  s->n_alive = left;
}

// Best first; equals stay in the order in which they were found.
static void rank(Sentence *s) {
  for (int32_t i = 1; i < s->n_finished; i++)
    for (int32_t k = i; k && s->finished[k].score > s->finished[k - 1].score; k--) {
      Finished f = s->finished[k];
      s->finished[k] = s->finished[k - 1];
      s->finished[k - 1] = f;
    }
}

static void sentence_over(Search *search, Sentence *s) {
  for (int32_t i = 0; i < s->n_alive; i++) hypothesis_drop(search, &s->alive[i]);
  for (int32_t l = 0; s->cross && l < search->model->size[N_DECODER_LAYERS]; l++) cache_drop(&search->pages, &s->cross[l]);
  let_go(s->alive), let_go(s->cross);
  s->alive = NULL;
  s->cross = NULL;
  s->n_alive = 0;
  if (!s->done) search->unfinished--;
  s->done = 1;
  rank(s);
}

// --- many sentences ---------------------------------------------------------------------------------------------------

static int32_t hypotheses_of(const Sentence *s) { return s->options.sampling ? s->options.n_best : s->options.beam; }

// Let sentences begin while there is room for their hypotheses; their sources are encoded together.
static void admit(Search *search) {
  const Model *m = search->model;
  int32_t rows = 0, n = 0, tokens = 0, layers = m->size[N_DECODER_LAYERS];
  for (int32_t i = 0; i < search->n_active; i++) rows += hypotheses_of(search->active[i]);
  // A few at a time make small products: wait until a fourth of the rows is free.
  if (rows && search->rows - rows < search->rows / 4) return;
  int32_t first = search->n_active;
  for (Sentence *s; (s = search->waiting); search->waiting = s->after) {
    if (rows && (rows + hypotheses_of(s) > search->rows || (n && tokens + s->n_source > ADMITTED))) break;
    rows += hypotheses_of(s);
    tokens += s->n_source;
    if (search->n_active == search->active_room) {
      int32_t room = 2 * search->active_room + 16;
      Sentence **grown = need((size_t)room * sizeof *grown);
      if (search->n_active) memcpy(grown, search->active, (size_t)search->n_active * sizeof *grown);
      let_go(search->active);
      search->active = grown;
      search->active_room = room;
    }
    search->active[search->n_active++] = s;
    s->begun = 1;
    n++;
  }
  if (!n) return;
  const int32_t **sources = need((size_t)n * sizeof *sources);
  int32_t *lengths = need((size_t)n * sizeof *lengths);
  Cache **cross = need((size_t)n * sizeof *cross);
  for (int32_t i = 0; i < n; i++) {
    Sentence *s = search->active[first + i];
    sources[i] = s->source;
    lengths[i] = s->n_source;
    cross[i] = s->cross = need((size_t)layers * sizeof(Cache));
    s->n_alive = s->options.sampling ? s->options.n_best : 1;
    s->alive = need((size_t)hypotheses_of(s) * sizeof *s->alive);
    for (int32_t h = 0; h < s->n_alive; h++) s->alive[h] = hypothesis_new(m, s, ((uint64_t)s->options.seed << 32) + (uint64_t)h);
  }
  if (has_encoder(m)) {
    encode(m, &search->scratch, &search->pages, sources, lengths, n, NULL);
    remember(m, &search->scratch, &search->pages, cross, lengths, n, NULL);
  }
  let_go(sources), let_go(lengths), let_go(cross);
}

// Rows of attention for a hypothesis that decodes `count` tokens now.
static float *attention_rows(Sentence *s, int32_t count) {
  int32_t width = s->n_source;
  if (s->attention_rows + count > s->attention_room) {
    int32_t room = 2 * s->attention_room + count;
    float *grown = need((size_t)room * (size_t)width * sizeof *grown);
    if (s->attention_rows) memcpy(grown, s->attention, (size_t)s->attention_rows * (size_t)width * sizeof *grown);
    let_go(s->attention);
    s->attention = grown;
    s->attention_room = room;
  }
  s->attention_rows += count;
  return s->attention + (size_t)(s->attention_rows - count) * (size_t)width;
}

// The tokens that each hypothesis of a sentence decodes now: its latest, or at first the start and the forced prefix.
static int32_t tokens_now(const Sentence *s) { return s->alive[0].self[0].length ? 1 : 1 + s->n_prefix; }

static float *logits_room(Search *search, int32_t rows) {
  if (rows > search->logits_rows) {
    let_go(search->logits);
    search->logits = need((size_t)rows * (size_t)logits_width(search->model) * sizeof(float));
    search->logits_rows = rows;
  }
  return search->logits;
}

// One step of all hypotheses that are alive.
static void step(Search *search) {
  const Model *m = search->model;
  int32_t n = 0, room = 0, d = m->size[D_MODEL], width = logits_width(m);
  admit(search);
  for (int32_t i = 0; i < search->n_active; i++) {
    n += search->active[i]->n_alive;
    room += search->active[i]->n_alive * tokens_now(search->active[i]);
  }
  if (!n) return;
  Decoding *some = need((size_t)n * sizeof *some);
  int32_t *tokens = need((size_t)room * sizeof *tokens), *last = need((size_t)n * sizeof *last);
  n = room = 0;
  for (int32_t i = 0; i < search->n_active; i++) {
    Sentence *s = search->active[i];
    int32_t count = tokens_now(s);
    float *looked = s->n_source ? attention_rows(s, count * s->n_alive) : NULL;
    for (int32_t h = 0; h < s->n_alive; h++) {
      const Hypothesis *alive = &s->alive[h];
      int32_t fresh = !alive->self[0].length, *ids = tokens + room;
      ids[0] = fresh ? m->size[START] : alive->ids[alive->length - 1];
      if (fresh && s->n_prefix) memcpy(ids + 1, s->prefix, (size_t)s->n_prefix * 4);
      some[n] = (Decoding){ids, count, alive->self, s->cross, looked ? looked + (size_t)(h * count) * (size_t)s->n_source : NULL};
      room += count;
      last[n++] = room - 1;
    }
  }
  decode(m, &search->scratch, &search->pages, some, n, NULL);
  float *x = search->scratch.x; // the last row of each hypothesis tells its next word
  for (int32_t i = 0; i < n; i++) memmove(x + (size_t)i * (size_t)d, x + (size_t)last[i] * (size_t)d, (size_t)d * sizeof *x);
  int32_t left = 0, at = 0, begin = 0, end = 0; // logits are there for the rows from begin to end
  for (int32_t i = 0; i < search->n_active; i++) {
    Sentence *s = search->active[i];
    if (at == end) {
      begin = at;
      for (int32_t k = i; k < search->n_active && (end == begin || end - begin + search->active[k]->n_alive <= LOGITS_AT_ONCE); k++)
        end += search->active[k]->n_alive;
      logits(m, &search->scratch, x + (size_t)begin * (size_t)d, end - begin, logits_room(search, end - begin), NULL);
    }
    int32_t alive = s->n_alive, count = some[at].count, first = s->attention_rows - count * alive;
    // Rows of a forced prefix belong to its tokens; those of the token to be chosen now come last, one a hypothesis.
    for (int32_t h = 0; count > 1 && s->n_source && h < alive; h++) {
      for (int32_t t = 0; t < s->n_prefix; t++) s->alive[h].looked[t] = first + h * count + t;
      float *row = attention_rows(s, 1);
      memcpy(row, s->attention + (size_t)(first + h * count + count - 1) * (size_t)s->n_source, (size_t)s->n_source * sizeof *row);
    }
    float *rows = search->logits + (size_t)(at - begin) * (size_t)width;
    if (s->options.sampling || s->options.beam == 1) step_each(search, s, rows, s->attention_rows - alive);
    else step_beam(search, s, rows, s->attention_rows - alive);
    at += alive;
    if (s->n_alive) search->active[left++] = s;
    else sentence_over(search, s);
  }
  search->n_active = left;
  let_go(some), let_go(tokens), let_go(last);
}

// --- for the host -----------------------------------------------------------------------------------------------------

Search *search_new(const Model *m, int32_t rows) {
  Search *search = need(sizeof *search);
  search->model = m;
  search->rows = rows < 1 ? 1 : rows > 4096 ? 4096 : rows;
  search->pages.width = m->size[N_HEADS] * m->size[D_HEAD];
  return search;
}

static int are_tokens(const int32_t *ids, int32_t n, int32_t vocabulary) {
  for (int32_t i = 0; i < n; i++) if (ids[i] < 0 || ids[i] >= vocabulary) return 0;
  return 1;
}

int32_t search_add(Search *search, const Options *o, const int32_t *source, int32_t n_source, const int32_t *prefix, int32_t n_prefix,
                   const int32_t *suppressed, int32_t n_suppressed) {
  const Model *m = search->model;
  const int32_t *c = m->size;
  int fits = has_decoder(m) && c[START] >= 0 && (has_encoder(m) ? n_source > 0 : !n_source) && n_source <= c[MAX_POSITIONS] && n_prefix >= 0 &&
             n_suppressed >= 0 && are_tokens(source, n_source, c[SOURCE_VOCABULARY]) && are_tokens(prefix, n_prefix, c[TARGET_VOCABULARY]) &&
             are_tokens(suppressed, n_suppressed, c[TARGET_VOCABULARY]) && o->max_length > n_prefix && o->max_length <= c[MAX_POSITIONS] &&
             o->beam >= 1 && o->beam <= MOST_BEAM && o->n_best >= 1 && o->n_best <= (o->sampling ? MOST_BEAM : o->beam) &&
             o->no_repeat_ngram >= 0 && o->top_k >= 0 && o->top_p > 0 && o->temperature > 0 && (!o->sampling || o->beam == 1);
  if (!fits) return -1;
  int32_t ticket = 0;
  while (ticket < search->room && search->sentences[ticket]) ticket++;
  if (ticket == search->room) {
    int32_t room = search->room ? 2 * search->room : 64;
    Sentence **grown = need((size_t)room * sizeof *grown);
    if (search->room) memcpy(grown, search->sentences, (size_t)search->room * sizeof *grown);
    let_go(search->sentences);
    search->sentences = grown;
    search->room = room;
  }
  Sentence *s = need(sizeof *s);
  *s = (Sentence){.options = *o, .source = copy_of(source, (size_t)n_source * 4), .n_source = n_source, .prefix = copy_of(prefix, (size_t)n_prefix * 4),
                  .n_prefix = n_prefix, .suppressed = copy_of(suppressed, (size_t)n_suppressed * 4), .n_suppressed = n_suppressed,
                  .finished = need((size_t)(3 * (o->beam > o->n_best ? o->beam : o->n_best)) * sizeof(Finished))};
  if (search->waiting) search->last_waiting->after = s;
  else search->waiting = s;
  search->last_waiting = s;
  search->sentences[ticket] = s;
  search->unfinished++;
  return ticket;
}

int32_t search_run(Search *search, int32_t steps) {
  while (steps-- > 0 && search->unfinished) step(search);
  return search->unfinished;
}

static Sentence *sentence(const Search *search, int32_t ticket) {
  return ticket >= 0 && ticket < search->room ? search->sentences[ticket] : NULL;
}

static const Finished *found(const Search *search, int32_t ticket, int32_t nth) {
  const Sentence *s = sentence(search, ticket);
  return s && s->done && nth >= 0 && nth < s->n_finished && nth < s->options.n_best ? &s->finished[nth] : NULL;
}

int32_t search_count(const Search *search, int32_t ticket) {
  const Sentence *s = sentence(search, ticket);
  if (!s || !s->done) return -1;
  return s->n_finished < s->options.n_best ? s->n_finished : s->options.n_best;
}

int32_t search_length(const Search *search, int32_t ticket, int32_t nth) {
  const Finished *f = found(search, ticket, nth);
  return f ? f->length : -1;
}

int32_t search_written(const Search *search, int32_t ticket, int32_t *ids, int32_t room) {
  const Sentence *s = sentence(search, ticket);
  if (!s || !s->n_alive) return -1;
  int32_t n = s->alive[0].length < room ? s->alive[0].length : room;
  if (n) memcpy(ids, s->alive[0].ids, (size_t)n * 4);
  return s->alive[0].length;
}

int32_t search_read(const Search *search, int32_t ticket, int32_t nth, int32_t *ids, float *log_probs, float *attention, double *total) {
  const Finished *f = found(search, ticket, nth);
  if (!f) return -1;
  const Sentence *s = sentence(search, ticket);
  size_t n = (size_t)f->length, width = (size_t)s->n_source;
  if (ids) memcpy(ids, f->ids, n * 4);
  if (log_probs) memcpy(log_probs, f->log_probs, n * 4);
  for (size_t t = 0; attention && width && t < n; t++) memcpy(attention + t * width, s->attention + (size_t)f->looked[t] * width, width * 4);
  if (total) total[0] = f->total, total[1] = f->score;
  return f->ended;
}

// A sentence leaves the queue, or the decoder.
int32_t search_cancel(Search *search, int32_t ticket) {
  Sentence *s = sentence(search, ticket);
  if (!s || s->done) return search->unfinished;
  if (!s->begun) {
    Sentence *before = NULL, *other = search->waiting;
    while (other != s) before = other, other = other->after;
    if (before) before->after = s->after;
    else search->waiting = s->after;
    if (search->last_waiting == s) search->last_waiting = before;
  }
  sentence_over(search, s);
  int32_t left = 0;
  for (int32_t i = 0; i < search->n_active; i++)
    if (search->active[i] != s) search->active[left++] = search->active[i];
  search->n_active = left;
  return search->unfinished;
}

void search_drop(Search *search, int32_t ticket) {
  Sentence *s = sentence(search, ticket);
  if (!s) return;
  search_cancel(search, ticket);
  for (int32_t i = 0; i < s->n_finished; i++) let_go(s->finished[i].ids), let_go(s->finished[i].looked), let_go(s->finished[i].log_probs);
  let_go(s->source), let_go(s->prefix), let_go(s->suppressed), let_go(s->finished), let_go(s->attention), let_go(s);
  search->sentences[ticket] = NULL;
}

void search_free(Search *search) {
  for (int32_t i = 0; i < search->room; i++) search_drop(search, i);
  pages_free(&search->pages);
  scratch_free(&search->scratch);
  let_go(search->logits), let_go(search->active), let_go(search->sentences), let_go(search);
}
