// Attention: how one row reads from others. §3.2. Rows that ask come in groups, each of one sentence (or hypothesis) with
// keys and values of its own; the products with parameters take the rows of all groups at once.

enum { PAGE = LANES }; // keys on a page

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
    page = need(sizeof *page + 64 + (2 * numbers + LANES) * sizeof(float));
    page->keys = (float *)(((uintptr_t)(page + 1) + 63) / 64 * 64);
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
  int32_t n = cache->length / PAGE, at = cache->length % PAGE, width = all->width;
  cache->pages = with_room(cache->pages, n + 1, &cache->room, sizeof *cache->pages);
  if (!at) cache->pages[n] = page_new(all);
  Page *page = cache->pages[n];
  if (page->users > 1) {
    Page *own = page_new(all);
    memcpy(own->keys, page->keys, 2 * (size_t)PAGE * (size_t)width * sizeof(float));
    page_drop(all, page);
    cache->pages[n] = page = own;
  }
  for (int32_t e = 0; e < width; e++) page->keys[e * PAGE + at] = key[e];
  memcpy(page->values + (size_t)at * (size_t)width, value, (size_t)width * sizeof(float));
  cache->length++;
}

static KVCache cache_share(const KVCache *cache) {
  KVCache copy = {need((size_t)cache->room * sizeof *copy.pages), cache->length, cache->room};
  int32_t n = (cache->length + PAGE - 1) / PAGE;
  if (n) memcpy(copy.pages, cache->pages, (size_t)n * sizeof *copy.pages);
  for (int32_t i = 0; i < n; i++) copy.pages[i]->users++;
  return copy;
}

static void cache_drop(Pages *all, KVCache *cache) {
  for (int32_t i = 0; i * PAGE < cache->length; i++) page_drop(all, cache->pages[i]);
  let_go(cache->pages);
  *cache = (KVCache){0};
}

// Rows `first` to `first + rows` of a pass, that ask `keys`. Causal: `before` keys precede them, and each sees its own
// and those before it; before < 0: all see all. `looked` gets the mean of the heads' weights, a row of `keys`, or is NULL.
typedef struct { int32_t first, rows, before; KVCache *keys; float *looked; } Group;

// --- Q K^T and weights V, each sum term by term -----------------------------------------------------------------------

// Some rows of one head against the keys of some pages: sums side by side do not wait for each other.
ALWAYS_INLINE void score_rows(const int tall, const int wide, const float *q, int32_t stride, Page *const *pages, int32_t at, int32_t width, float *s,
                              int32_t padded) {
  Lanes sums[4];
#pragma GCC unroll 4
  for (int i = 0; i < tall * wide; i++) sums[i] = (Lanes){0};
  for (int32_t k = 0; k < width; k++)
#pragma GCC unroll 2
    for (int p = 0; p < wide; p++) {
      Lanes key = load(pages[p]->keys + (size_t)(at + k) * PAGE);
#pragma GCC unroll 4
      for (int r = 0; r < tall; r++) sums[r * wide + p] = sums[r * wide + p] + q[(size_t)r * (size_t)stride + (size_t)k] * key;
    }
#pragma GCC unroll 4
  for (int r = 0; r < tall; r++)
#pragma GCC unroll 2
    for (int p = 0; p < wide; p++) store(s + (size_t)r * (size_t)padded + p * PAGE, sums[r * wide + p]);
}

// scores = Q K^T for `rows` rows of one head against all pages; `at` is the head's first column.
static void scores(const float *q, int32_t rows, int32_t stride, const KVCache *cache, int32_t at, int32_t width, float *s, int32_t padded) {
  int32_t n_pages = padded / PAGE, r = 0;
  for (; r + 4 <= rows; r += 4)
    for (int32_t p = 0; p < n_pages; p++)
      score_rows(4, 1, q + (size_t)r * (size_t)stride, stride, cache->pages + p, at, width, s + (size_t)r * (size_t)padded + p * PAGE, padded);
  for (; r < rows; r++) {
    int32_t p = 0;
    for (; p + 2 <= n_pages; p += 2)
      score_rows(1, 2, q + (size_t)r * (size_t)stride, stride, cache->pages + p, at, width, s + (size_t)r * (size_t)padded + p * PAGE, padded);
    for (; p < n_pages; p++)
      score_rows(1, 1, q + (size_t)r * (size_t)stride, stride, cache->pages + p, at, width, s + (size_t)r * (size_t)padded + p * PAGE, padded);
  }
}

// Some rows of one head, 16 or 32 columns from `at` on (or the last few).
ALWAYS_INLINE void mix_rows(const int tall, const int wide, const float *w, int32_t padded, const KVCache *cache, int32_t at, int32_t columns, int32_t stride,
                            float *y) {
  Lanes sums[4];
#pragma GCC unroll 4
  for (int i = 0; i < tall * wide; i++) sums[i] = (Lanes){0};
  for (int32_t p = 0; p * PAGE < cache->length; p++) {
    const float *values = cache->pages[p]->values + at, *share = w + p * PAGE;
    int32_t n = cache->length - p * PAGE < PAGE ? cache->length - p * PAGE : PAGE;
    for (int32_t m = 0; m < n; m++, values += stride)
#pragma GCC unroll 2
      for (int b = 0; b < wide; b++) {
        Lanes value = load(values + b * LANES);
#pragma GCC unroll 4
        for (int r = 0; r < tall; r++) sums[r * wide + b] = sums[r * wide + b] + share[(size_t)r * (size_t)padded + (size_t)m] * value;
      }
  }
#pragma GCC unroll 4
  for (int r = 0; r < tall; r++)
#pragma GCC unroll 2
    for (int b = 0; b < wide; b++) {
      float *to = y + (size_t)r * (size_t)stride + at + b * LANES;
      if (columns == LANES) store(to, sums[r * wide + b]);
      else store_part(to, sums[r * wide + b], columns);
    }
}

// weights V for `rows` rows of one head, into its columns of the concatenation.
static void mix(const float *w, int32_t rows, int32_t padded, const KVCache *cache, int32_t at, int32_t width, int32_t stride, float *y) {
  int32_t r = 0, end = at + width;
  for (; r + 4 <= rows; r += 4)
    for (int32_t c = at; c < end; c += LANES)
      mix_rows(4, 1, w + (size_t)r * (size_t)padded, padded, cache, c, end - c < LANES ? end - c : LANES, stride, y + (size_t)r * (size_t)stride);
  for (; r < rows; r++) {
    int32_t c = at;
    for (; c + 2 * LANES <= end; c += 2 * LANES)
      mix_rows(1, 2, w + (size_t)r * (size_t)padded, padded, cache, c, LANES, stride, y + (size_t)r * (size_t)stride);
    for (; c < end; c += LANES)
      mix_rows(1, 1, w + (size_t)r * (size_t)padded, padded, cache, c, end - c < LANES ? end - c : LANES, stride, y + (size_t)r * (size_t)stride);
  }
}

// softmax(Q K^T / sqrt(K)) V of each head by itself. Eq. 1. Row l of the group sees the keys 0 ... before + l.
static void attend(const Model *m, const Group *g, const float *Q, float *s, float *concat, Record *record) {
  int32_t heads = m->size[N_HEADS], width = m->size[D_HEAD], all_columns = heads * width;
  int32_t keys = g->keys->length, padded = in_lanes(keys), causal = g->before >= 0;
  Q += (size_t)g->first * (size_t)all_columns;
  concat += (size_t)g->first * (size_t)all_columns;
  // Some rows at a time, so that their scores stay in the processor's cache; all of them where somebody looks.
  int32_t at_once = record ? g->rows : 32;
  for (int32_t first = 0; first < g->rows; first += at_once) {
    int32_t rows = g->rows - first < at_once ? g->rows - first : at_once;
    size_t numbers = (size_t)rows * (size_t)padded;
    const float *q = Q + (size_t)first * (size_t)all_columns;
    float *looked = g->looked ? g->looked + (size_t)first * (size_t)keys : NULL;
    for (int32_t h = 0; h < heads; h++) {
      scores(q + h * width, rows, all_columns, g->keys, h * width, width, s, padded);
      tap(record, "scores", h, s, rows, keys, padded);
      for (size_t i = 0; i < numbers; i += LANES) store(s + i, load(s + i) / m->score_divisor);
      tap(record, "scaled", h, s, rows, keys, padded);
      for (int32_t l = 0; l < rows; l++)
        for (int32_t k = causal ? g->before + first + l + 1 : keys; k < padded; k++) s[(size_t)l * (size_t)padded + (size_t)k] = -INFINITY;
      if (causal) tap(record, "masked", h, s, rows, keys, padded);
      for (int32_t l = 0; l < rows; l++) softmax(s + (size_t)l * (size_t)padded, padded);
      tap(record, "weights", h, s, rows, keys, padded);
      if (looked)
        for (int32_t l = 0; l < rows; l++)
          for (int32_t k = 0; k < keys; k++) {
            float *mean = looked + (size_t)l * (size_t)keys + (size_t)k, w = s[(size_t)l * (size_t)padded + (size_t)k];
            *mean = h ? *mean + w : w;
            if (h == heads - 1) *mean = *mean / (float)heads;
          }
      float *head = concat + (size_t)first * (size_t)all_columns;
      mix(s, rows, padded, g->keys, h * width, width, all_columns, head);
      tap(record, "head", h, head + h * width, rows, width, all_columns);
    }
  }
}
