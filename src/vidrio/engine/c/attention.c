// Attention: how one row reads from others. §3.2. Rows that ask come in groups, each of one sentence (or hypothesis) with
// keys and values of its own; the products with parameters take the rows of all groups at once.

enum { PAGE = LANES, ROWS_AT_ONCE = 32 }; // keys on a page; rows whose scores stay in the processor's cache

// Keys and values of 16 rows, all heads: keys with a column for each row, so that lanes run across rows. Hypotheses of
// one beam share the pages of what they have in common; who writes into a shared page takes a copy first.
typedef struct Page {
  struct Page *next; // of those that are free
  int32_t users;
  float *keys, *values; // [E][16], [16][E]
} Page;

typedef struct { Page **pages; int32_t length, room; } KVCache; // of one attention of one sentence, or hypothesis

typedef struct { Page *free; int32_t width; } Pages; // E

static Page *page_new(Pages *all) {
  Page *page = all->free;
  if (page) all->free = page->next;
  else {
    size_t numbers = (size_t)PAGE * (size_t)all->width;
    page = need(64 + (2 * numbers + 2 * LANES) * sizeof(float)); // mix reads a little beyond the last value
    page->keys = (float *)page + LANES;
    page->values = page->keys + numbers;
  }
  page->users = 1;
  return page;
}

static void page_drop(Pages *all, Page *page) {
  if (--page->users) return;
  page->next = all->free;
  all->free = page;
}

static void pages_free(Pages *all) {
  while (all->free) {
    Page *page = all->free;
    all->free = page->next;
    let_go(page);
  }
}

// The keys and values of one more row.
static void cache_add(Pages *all, KVCache *cache, const float *key, const float *value) {
  int32_t n = cache->length / PAGE, at = cache->length++ % PAGE, width = all->width;
  cache->pages = with_room(cache->pages, n + 1, &cache->room, sizeof *cache->pages);
  Page *page = cache->pages[n];
  if (!at || page->users > 1) {
    cache->pages[n] = page_new(all);
    if (at) memcpy(cache->pages[n]->keys, page->keys, 2 * (size_t)PAGE * (size_t)width * sizeof(float)), page_drop(all, page);
    page = cache->pages[n];
  }
  for (int32_t e = 0; e < width; e++) page->keys[e * PAGE + at] = key[e];
  memcpy(page->values + (size_t)at * (size_t)width, value, (size_t)width * sizeof(float));
}

static KVCache cache_share(const KVCache *cache) {
  KVCache copy = {copy_of(cache->pages, (size_t)cache->room * sizeof *copy.pages), cache->length, cache->room};
  for (int32_t i = 0; i * PAGE < copy.length; i++) copy.pages[i]->users++;
  return copy;
}

static void cache_drop(Pages *all, KVCache *cache) {
  for (int32_t i = 0; i * PAGE < cache->length; i++) page_drop(all, cache->pages[i]);
  let_go(cache->pages);
  *cache = (KVCache){0};
}

// Tokens of one sentence (or hypothesis) that go through the model together, as rows `first` to `first + count` of a pass.
typedef struct {
  const int32_t *ids;
  int32_t count;
  KVCache *self, *cross; // keys and values of each layer: of the tokens so far, and of what was read
  float *looked;         // gets a row of attention for each token: the mean of the last layer's heads; or NULL
  int32_t first;
} Group;

// --- Q K^T and weights V, each sum term by term -----------------------------------------------------------------------

// Some rows of one head against the keys of some pages: sums side by side do not wait for each other.
ALWAYS_INLINE void score(const int tall, const int wide, const float *q, size_t stride, const KVCache *cache, int32_t page, int32_t at, int32_t width,
                         float *s, int32_t padded) {
  Lanes sums[4] = {{0}};
  const float *keys[2];
  int32_t last = padded / PAGE - 1;
  for (int p = 0; p < wide; p++) keys[p] = cache->pages[page + p < last ? page + p : last]->keys + (size_t)at * PAGE;
  add_products(tall, wide, sums, q, stride, keys, PAGE, width);
  for (int r = 0; r < tall; r++)
    for (int p = 0; p < wide && page + p <= last; p++) store(s + (size_t)r * (size_t)padded + (page + p) * PAGE, sums[r * wide + p]);
}

// scores = Q K^T for `rows` rows of one head against all pages; `at` is the head's first column.
static void scores(const float *q, int32_t rows, size_t stride, const KVCache *cache, int32_t at, int32_t width, float *s, int32_t padded) {
  int32_t r = 0, pages = padded / PAGE;
  for (; r + 4 <= rows; r += 4, q += 4 * stride, s += 4 * padded)
    for (int32_t p = 0; p < pages; p++) score(4, 1, q, stride, cache, p, at, width, s, padded);
  for (; r < rows; r++, q += stride, s += padded)
    for (int32_t p = 0; p < pages; p += 2) score(1, 2, q, stride, cache, p, at, width, s, padded);
}

// Some rows of one head, 16 or 32 columns from `at` on, of which `columns` are the head's.
ALWAYS_INLINE void mix_columns(const int tall, const int wide, const float *w, int32_t padded, const KVCache *cache, int32_t at, int32_t columns,
                               size_t stride, float *y) {
  Lanes sums[4] = {{0}};
  for (int32_t p = 0; p * PAGE < cache->length; p++) {
    const float *values[2] = {cache->pages[p]->values + at, cache->pages[p]->values + at + LANES};
    int32_t n = cache->length - p * PAGE < PAGE ? cache->length - p * PAGE : PAGE;
    add_products(tall, wide, sums, w + p * PAGE, (size_t)padded, values, stride, n);
  }
  for (int r = 0; r < tall; r++)
    for (int b = 0; b < wide && b * LANES < columns; b++) store_some(y + (size_t)r * stride + at + b * LANES, sums[r * wide + b], columns - b * LANES);
}

// weights V for `rows` rows of one head, into its columns of the concatenation.
static void mix(const float *w, int32_t rows, int32_t padded, const KVCache *cache, int32_t at, int32_t width, size_t stride, float *y) {
  int32_t r = 0;
  for (; r + 4 <= rows; r += 4, w += 4 * padded, y += 4 * stride)
    for (int32_t c = 0; c < width; c += LANES) mix_columns(4, 1, w, padded, cache, at + c, width - c, stride, y);
  for (; r < rows; r++, w += padded, y += stride)
    for (int32_t c = 0; c < width; c += 2 * LANES) mix_columns(1, 2, w, padded, cache, at + c, width - c, stride, y);
}

// softmax(Q K^T / sqrt(K)) V of each head by itself. Eq. 1. Causal: a row of the group sees its own key and those before it.
static void attend(const Model *m, const Group *g, const KVCache *cache, int is_causal, float *looked, const float *Q, float *s, float *concat,
                   Record *record) {
  int32_t heads = m->size[N_HEADS], width = m->size[D_HEAD], keys = cache->length, padded = in_lanes(keys);
  size_t stride = (size_t)heads * (size_t)width;
  int32_t at_once = record ? g->count : ROWS_AT_ONCE;
  for (int32_t first = 0; first < g->count; first += at_once) {
    int32_t rows = g->count - first < at_once ? g->count - first : at_once;
    const float *q = Q + (size_t)(g->first + first) * stride;
    float *y = concat + (size_t)(g->first + first) * stride;
    for (int32_t h = 0; h < heads; h++) {
      scores(q + h * width, rows, stride, cache, h * width, width, s, padded);
      tap(record, "scores", "", h, s, rows, keys, padded);
      for (float *x = s; x < s + (size_t)rows * (size_t)padded; x += LANES) store(x, load(x) / m->score_divisor);
      tap(record, "scaled", "", h, s, rows, keys, padded);
      for (int32_t l = 0; l < rows; l++)
        for (int32_t k = is_causal ? keys - g->count + first + l + 1 : keys; k < padded; k++) s[(size_t)l * (size_t)padded + (size_t)k] = -INFINITY;
      if (is_causal) tap(record, "masked", "", h, s, rows, keys, padded);
      for (int32_t l = 0; l < rows; l++) softmax(s + (size_t)l * (size_t)padded, padded);
      tap(record, "weights", "", h, s, rows, keys, padded);
      for (int32_t l = 0; looked && l < rows; l++)
        for (int32_t k = 0; k < keys; k++) {
          float *mean = looked + (size_t)(first + l) * (size_t)keys + k, w = s[(size_t)l * (size_t)padded + (size_t)k];
          *mean = h ? *mean + w : w;
          if (h == heads - 1) *mean = *mean / (float)heads;
        }
      mix(s, rows, padded, cache, h * width, width, stride, y);
      tap(record, "head", "", h, y + h * width, rows, width, (int32_t)stride);
    }
  }
}
