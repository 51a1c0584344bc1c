// Tracing: each quantity of a pass is copied under its address (enc.0.self.Q.h1). Without a Record (NULL), tracing is
// off, and its cost is a single branch.

typedef struct { char address[64]; int32_t rows, columns; float values[]; } Quantity; // columns is 0 for a vector

enum { HEADER = sizeof(Quantity) / sizeof(float), CHUNK = 1 << 18 };

// A list of Quantities, each followed by its values. Sizes are numbers of float32 values. The host frees each chunk as
// soon as it has read it, so that a long pass is not held in memory twice.
typedef struct Chunk { struct Chunk *next; int32_t count, room; float quantities[]; } Chunk;

typedef struct Record {
  char place[48]; // the current part of the pass, e.g. enc.0.self
  Chunk *first, *last;
} Record;

// Return the last chunk, or a new one, with capacity for more numbers.
static Chunk *chunk_for(Record *record, int64_t numbers) {
  Chunk *last = record->last;
  if (last && numbers <= last->room - last->count) return last;
  if (numbers > INT32_MAX) run_out();
  void *of_call = owner;
  owner = record; // the chunk belongs to the record, even if memory runs out during the call
  int32_t room = numbers > CHUNK ? (int32_t)numbers : CHUNK;
  Chunk *chunk = allocate(1, sizeof *chunk + (uint64_t)room * sizeof(float));
  owner = of_call;
  *chunk = (Chunk){.room = room};
  if (last) last->next = chunk;
  else record->first = chunk;
  return record->last = chunk;
}

// Set the current part to side.n.part, or to the side alone if n < 0.
static void enter(Record *record, const char *side, int32_t n, const char *part) {
  if (!record) return;
  snprintf(record->place, sizeof record->place, n < 0 ? "%s" : "%s.%d.%s", side, n, part);
}

// Record place.name.hH, or place.name if head < 0. Rows are `stride` apart. `aspect` is a suffix of the name, such as
// .scale in x.scale, or "".
static void tap(Record *record, const char *name, const char *aspect, int32_t head, const float *values, int32_t rows, int32_t columns,
                int32_t stride) {
  if (!record) return;
  int32_t width = columns ? columns : 1;
  int64_t numbers = HEADER + (int64_t)rows * width;
  Chunk *chunk = chunk_for(record, numbers);
  Quantity *q = memset(chunk->quantities + chunk->count, 0, sizeof *q);
  chunk->count += (int32_t)numbers;
  int end = snprintf(q->address, sizeof q->address, "%s%s%s%s", record->place, *record->place ? "." : "", name, aspect);
  if (head >= 0) snprintf(q->address + end, sizeof q->address - (size_t)end, ".h%d", head);
  q->rows = rows, q->columns = columns;
  for (size_t r = 0; r < (size_t)rows; r++) memcpy(q->values + r * (size_t)width, values + r * (size_t)stride, (size_t)width * sizeof(float));
}

// For the host, which reads and drops one chunk at a time.
Record *record_new(void) { return new_owner(sizeof(Record)); }
const float *record_quantities(const Record *r) { return r->first->quantities; }
int32_t record_count(const Record *r) { return r->first ? r->first->count : 0; }
void record_drop(Record *r) {
  Chunk *read = r->first;
  r->first = read->next;
  if (!r->first) r->last = NULL;
  release(read);
}
void record_free(Record *r) { release_all(r); }
