// Attention, §3.2. Query rows are processed in groups. Each group belongs to a sentence (or hypothesis) and has its own
// keys and values, but products with parameters are computed for the rows of all groups at once.

enum { PAGE = LANES, ROWS_AT_ONCE = 32 }; // keys per page; number of rows whose scores fit in the processor's cache

// The keys and values of 16 rows, for all heads. Keys are stored with one column per row, so that vector lanes run
// across rows. Hypotheses in a beam share the pages of their common prefix. A shared page is copied before it changes.
typedef struct { int32_t users; float *keys, *values; } Page; // [E][16], [16][E]

// The keys and values of an attention sub-layer for a sentence (or hypothesis), or the state of a recurrent cell (D
// numbers).
typedef struct { Page **pages; int32_t length, room; float *state; int32_t width; } KVCache;

static Page *page_new(int32_t width) {
  Page *page = allocate(2 * PAGE * (uint64_t)width + 2 * LANES, sizeof(float)); // a tile reads beyond the last value
  *page = (Page){1, (float *)page + LANES, (float *)page + LANES + PAGE * (size_t)width};
  return page;
}

static void page_drop(Page *page) {
  if (!--page->users) release(page);
}

// Append the keys and values of a row.
static void cache_add(KVCache *cache, int32_t width, const float *key, const float *value) {
  int32_t n = cache->length / PAGE, at = cache->length++ % PAGE;
  cache->pages = grow(cache->pages, n + 1, &cache->room, sizeof *cache->pages);
  Page *page = cache->pages[n];
  if (!at || page->users > 1) {
    cache->pages[n] = page_new(width);
    if (at) memcpy(cache->pages[n]->keys, page->keys, (PAGE + (size_t)at) * (size_t)width * sizeof(float)), page_drop(page);
    page = cache->pages[n];
  }
  for (int32_t e = 0; e < width; e++) page->keys[e * PAGE + at] = key[e];
  memcpy(page->values + (size_t)at * (size_t)width, value, (size_t)width * sizeof *value);
}

static KVCache cache_share(const KVCache *cache) {
  if (cache->state) return (KVCache){.length = cache->length, .state = copy_of(cache->state, (uint64_t)cache->width, sizeof(float)), .width = cache->width};
  for (int32_t p = 0; p * PAGE < cache->length; p++) cache->pages[p]->users++;
  return (KVCache){.pages = copy_of(cache->pages, (uint64_t)cache->room, sizeof *cache->pages), .length = cache->length, .room = cache->room};
}

static void cache_drop(KVCache *cache) {
  for (int32_t p = 0; !cache->state && p * PAGE < cache->length; p++) page_drop(cache->pages[p]);
  release(cache->pages), release(cache->state);
  *cache = (KVCache){0};
}

// Tokens of a sentence (or hypothesis) that are processed together, as rows `first` to `first + count` of a pass.
typedef struct {
  const int32_t *ids;
  int32_t count;
  KVCache *self, *cross; // keys and values of the tokens so far, and of the memory, for each layer
  float *attention;      // receives the attention of each token, averaged over the heads of the last layer; may be NULL
  int32_t first;
  Interventions interventions;
  int32_t seen; // number of tokens that went through the stack in earlier steps
  int32_t starts; // used by the encoder, see `order_by_start`
} Group;

// Queries that are computed together: either several rows of one head, which use the same keys and values, or all heads
// of one row. `stride` is the distance between the queries, and `step` that between their columns of keys and values.
typedef struct { int32_t count, stride, step; } QueryBlock;

// Compute scores = Q K^T. `at` is the first column of the first query's head.
static void scores(const float *q, QueryBlock rows, const KVCache *cache, int32_t at, int32_t width, float *s, int32_t padded) {
  memset(s, 0, (size_t)rows.count * (size_t)padded * sizeof *s);
  for (int32_t p = 0; p * PAGE < cache->length; p++)
    add_product(q + at, rows.stride, rows.count, cache->pages[p]->keys + (size_t)at * PAGE, rows.step * PAGE, PAGE, width, s + p * PAGE, padded, PAGE);
}

// Compute weights V, and store the result in the columns of the concatenated heads, which have a total width of `all`.
static void mix(const float *w, QueryBlock rows, int32_t padded, const KVCache *cache, int32_t at, int32_t width, float *y, int32_t all) {
  for (int32_t r = 0; r < rows.count; r++) memset(y + (size_t)r * (size_t)rows.stride + at, 0, (size_t)width * sizeof *y);
  for (int32_t p = 0, left = cache->length; left > 0; p++, left -= PAGE)
    add_product(w + p * PAGE, padded, rows.count, cache->pages[p]->values + at, rows.step, all, left < PAGE ? left : PAGE, y + at, rows.stride, width);
}

// Compute softmax(Q K^T / sqrt(K)) V for each head. Eq. 1. If is_causal, each row attends only to itself and to earlier
// rows.
static void attend(const Model *m, const Group *g, const KVCache *cache, int is_causal, float *attention, const float *Q, float *s, float *concat,
                   Record *record) {
  int32_t heads = m->size[N_HEADS], width = m->size[D_HEAD], all = heads * width, keys = cache->length, padded = in_lanes(keys);
  int32_t is_one = g->count == 1 && !record, at_once = record ? g->count : ROWS_AT_ONCE;
  for (int32_t first = 0; first < g->count; first += at_once) {
    QueryBlock rows = {g->count - first < at_once ? g->count - first : at_once, all, 0};
    if (is_one) rows = (QueryBlock){heads, width, width};
    size_t before = (size_t)(g->first + first) * (size_t)all;
    for (int32_t h = 0; h < heads; h += is_one ? heads : 1) {
      scores(Q + before, rows, cache, h * width, width, s, padded);
      tap(record, "scores", "", h, s, rows.count, keys, padded);
      for (float *x = s; x < s + (size_t)rows.count * (size_t)padded; x += LANES) store(x, load(x) / m->score_divisor);
      for (const int32_t *one = NULL; !is_causal && (one = next_intervention(m, g->interventions, one));)
        for (int32_t l = 0; one[0] == HIDE && l < rows.count; l++) s[(size_t)l * (size_t)padded + (size_t)one[2]] = -INFINITY;
      tap(record, "scaled", "", h, s, rows.count, keys, padded);
      for (int32_t l = 0; l < rows.count; l++)
        for (int32_t k = is_causal && !is_one ? keys - g->count + first + l + 1 : keys; k < padded; k++) s[(size_t)l * (size_t)padded + (size_t)k] = -INFINITY;
      if (is_causal) tap(record, "masked", "", h, s, rows.count, keys, padded);
      for (int32_t l = 0; l < rows.count; l++) softmax(s + (size_t)l * (size_t)padded, padded);
      tap(record, "weights", "", h, s, rows.count, keys, padded);
      for (int32_t l = 0; attention && l < rows.count; l++)
        for (int32_t k = 0, head = is_one ? l : h; k < keys; k++) {
          float *mean = attention + (size_t)(is_one ? 0 : first + l) * (size_t)keys + k, total = s[(size_t)l * (size_t)padded + (size_t)k] + (head ? *mean : 0);
          *mean = head == heads - 1 ? total / (float)heads : total;
        }
      mix(s, rows, padded, cache, h * width, width, concat + before, all);
    }
  }
}
