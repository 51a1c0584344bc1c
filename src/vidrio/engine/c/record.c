// Tracing: every quantity of a pass is copied under its address (enc.0.self.Q.h1). A Record of NULL turns it off and costs
// one branch.

typedef struct { char address[64]; int32_t rows, columns; float values[]; } Quantity; // no columns: a vector

enum { HEADER = sizeof(Quantity) / sizeof(float) };

typedef struct Record {
  char place[48];      // the current part of the pass: enc.0.self
  float *quantities;   // a list of Quantities, each followed by its values
  int32_t count, room; // in numbers
} Record;

// Set the current part to side.n.part; n < 0: to the side alone.
static void enter(Record *record, const char *side, int32_t n, const char *part) {
  if (!record) return;
  snprintf(record->place, sizeof record->place, n < 0 ? "%s" : "%s.%d.%s", side, n, part);
}

// Record place.name.hH, or place.name if head < 0. Rows are `stride` apart. `aspect` is a suffix: of x its .scale, or
// "".
static void tap(Record *record, const char *name, const char *aspect, int32_t head, const float *values, int32_t rows, int32_t columns,
                int32_t stride) {
  if (!record) return;
  int32_t width = columns ? columns : 1, before = record->count;
  int64_t numbers = before + HEADER + (int64_t)rows * width;
  void *of_call = owner;
  owner = record; // it outlives the call, even if memory runs out
  record->quantities = grow(record->quantities, numbers, &record->room, sizeof(float));
  record->count = (int32_t)numbers;
  owner = of_call;
  Quantity *q = memset(record->quantities + before, 0, sizeof *q);
  int end = snprintf(q->address, sizeof q->address, "%s%s%s%s", record->place, *record->place ? "." : "", name, aspect);
  if (head >= 0) snprintf(q->address + end, sizeof q->address - (size_t)end, ".h%d", head);
  q->rows = rows, q->columns = columns;
  for (size_t r = 0; r < (size_t)rows; r++) memcpy(q->values + r * (size_t)width, values + r * (size_t)stride, (size_t)width * sizeof(float));
}

// For the host, which reads all of it at once.
Record *record_new(void) { return new_owner(sizeof(Record)); }
const float *record_quantities(const Record *r) { return r->quantities; }
int32_t record_count(const Record *r) { return r->count; }
void record_free(Record *r) { release_all(r); }
