// Runs cases from standard input through the engine and writes the bits of all results to standard output: what
// tests/engine_cases.py writes. So the engine is tried for processors that this Python does not run on, and under the
// sanitizers of a compiler, which stop the program when it reads or writes where it may not. With an argument, one of the
// allocations of each case fails, and the program stops when the engine has not freed all others.
#include <stdio.h>
#include <stdlib.h>

static long allocated, in_use, fails; // allocations of a case, those not freed, and the one that fails; 0: none

static void *counted_malloc(size_t bytes) {
  void *p = ++allocated == fails ? NULL : malloc(bytes);
  in_use += p != NULL;
  return p;
}

static void counted_free(void *p) {
  in_use -= p != NULL;
  free(p);
}

#define malloc counted_malloc
#define free counted_free
#include "engine.c"
#undef malloc
#undef free

enum { LISTS = 5 }; // of a sentence: source, prefix, suppressed, shortlist, interventions

static void *get(size_t bytes) { // exactly as much as it takes, so that a sanitizer sees the first byte beyond
  void *to = malloc(bytes ? bytes : 1);
  if (!to || fread(to, 1, bytes, stdin) != bytes) exit(3);
  return to;
}

static int32_t get_number(void) {
  int32_t n;
  return fread(&n, sizeof n, 1, stdin) == 1 ? n : exit(3), n;
}

static void put(const void *from, size_t bytes) { fwrite(from, 1, bytes, stdout); }
static void put_number(int32_t n) { put(&n, sizeof n); }

static void put_found(const Sentence *sentence, int32_t n_source) {
  for (int32_t nth = 0; sentence_found(sentence, nth); nth++) {
    const Hypothesis *h = sentence_found(sentence, nth);
    put_number(h->length), put_number(h->ended), put(&h->total, sizeof h->total), put(&h->score, sizeof h->score);
    for (int32_t t = 0; t < h->length; t++) {
      const Token *token = &hypothesis_tokens(h)[t];
      put_number(token->id), put(&token->log_prob, sizeof token->log_prob);
      put(sentence_attention(sentence) + (size_t)token->row * (size_t)n_source, (size_t)n_source * 4);
    }
  }
}

static void put_record(Record *record) {
  int32_t numbers;
  for (; record_count(record); record_drop(record))
    for (int32_t n = 0; n < record_count(record); n += HEADER + numbers) {
      const Quantity *q = (const Quantity *)(record_quantities(record) + n);
      numbers = q->rows * (q->columns ? q->columns : 1);
      put_number((int32_t)strlen(q->address));
      put(q->address, strlen(q->address));
      put_number(q->rows), put_number(q->columns);
      put(q->values, (size_t)numbers * 4);
    }
}

// What a pass has found, so many numbers, and all on the way.
static void put_pass(float *found, size_t numbers, Record *record) {
  put_number(found != NULL);
  if (found) put(found, numbers * 4);
  if (found && record) put_record(record);
  release(found), record_free(record);
}

// All sentences of a case side by side, at most so many steps; then each by itself as a forced pass.
static void run(const Model *model, int32_t rows, int32_t steps, int32_t n) {
  Search *search = search_new(model, rows);
  Sentence **sentences = malloc((size_t)n * sizeof *sentences + 1);
  int32_t *lengths = malloc((size_t)n * 4 + 1);
  for (int32_t i = 0; i < n; i++) {
    Options *options = get(sizeof *options);
    int32_t *ids[LISTS], count[LISTS];
    for (int k = 0; k < LISTS; k++) count[k] = get_number(), ids[k] = get((size_t)count[k] * 4);
    sentences[i] = !search ? NULL : search_add(search, ids[0], count[0], options, ids[1], count[1], ids[2], count[2], ids[4], count[4]);
    if (sentences[i] && count[3]) put_number(sentence_shortlist(search, sentences[i], ids[3], count[3]));
    lengths[i] = count[0];
    put_number(sentences[i] != NULL);
    Record *record = record_new();
    // The variant with a record; then it, one without interventions and it again, together.
    size_t rows_2 = 2 * (size_t)count[1] + 2, words = (size_t)count[4] + 1;
    int32_t *asked = malloc(rows_2 * 4), *variants = malloc((2 * words + 1) * 4);
    for (size_t k = 0; k < rows_2; k++) asked[k] = k % 3 ? model->size[END] : -1;
    variants[0] = count[4], variants[words] = 0;
    memcpy(variants + 1, ids[4], (words - 1) * 4), memcpy(variants + words + 1, variants, words * 4);
    float *found = forced(model, record, ids[0], count[0], ids[1], count[1], asked, variants, (int32_t)words);
    put_pass(found, rows_2, record);
    found = forced(model, NULL, ids[0], count[0], ids[1], count[1], asked, variants, (int32_t)(2 * words + 1));
    put_pass(found, 3 * rows_2, NULL);
    free(asked), free(variants);
    record = record_new();
    found = classify(model, record, ids[0], count[0]);
    put_pass(found, (size_t)model->size[N_CLASSES], record);
    free(options);
    for (int k = 0; k < LISTS; k++) free(ids[k]);
  }
  int32_t left = search ? n : -1;
  for (; left > 0 && steps > 0; steps -= 3) left = search_run(search, 3);
  for (int32_t i = 0; i < n && left >= 0; i++) {
    if (sentences[i]) put_found(sentences[i], lengths[i]);
    if (i % 2 && sentences[i]) search_drop(search, sentences[i]);
  }
  if (search && search_next(search)) search_drop(search, search_next(search));
  search_free(search);
  free(sentences), free(lengths);
}

int main(int count, char **arguments) {
  long cases = 0, failed = 0;
  if (count > 1) srand((unsigned)atoi(arguments[1]));
  for (int32_t more = get_number(); more; more = get_number(), cases++) {
    allocated = 0, fails = count > 1 ? 1 + rand() % (1 << (1 + rand() % 13)) : 0;
    int32_t *sizes = get(N_SIZES * 4), n_tensors = get_number();
    Tensor *tensors = get((size_t)n_tensors * sizeof *tensors);
    int32_t n_bytes = get_number(), rows, steps, n;
    uint8_t *data = get((size_t)n_bytes);
    Model *model = model_load(sizes, tensors, n_tensors, data, n_bytes);
    free(sizes), free(tensors), free(data);
    rows = get_number(), steps = get_number(), n = get_number();
    put_number(model != NULL);
    if (model) run(model, rows, steps, n);
    else { // read past what was for the model
      put_number((int32_t)strlen(model_problem()));
      for (int32_t i = 0; i < n; i++) {
        free(get(sizeof(Options)));
        for (int k = 0; k < LISTS; k++) free(get((size_t)get_number() * 4));
      }
    }
    model_free(model);
    fflush(stdout);
    failed += fails && allocated >= fails;
    if (in_use) return 4;
  }
  fprintf(stderr, "%ld of %ld cases ran out of memory\n", failed, cases);
  return 0;
}
