// Somebody looks: every quantity of a pass, copied under its address (enc.0.self.Q.h1) as the engine has it in memory.
// Nobody looking is a NULL, and costs a branch.

typedef struct { char address[64]; int32_t rows, columns; float values[]; } Quantity; // no columns: a vector

typedef struct Record {
  char place[48]; // where the pass is: enc.0.self
  Quantity **quantities;
  int32_t count, room;
} Record;

// What is recorded from now on belongs to side.n.part; n < 0: to the side alone.
static void enter(Record *record, const char *side, int32_t n, const char *part) {
  if (!record) return;
  snprintf(record->place, sizeof record->place, n < 0 ? "%s" : "%s.%d.%s", side, n, part);
}

// place.name.hH, or place.name where head < 0. Rows lie `stride` apart. `aspect` is a part of the
// name: of x its .scale, or "".
static void tap(Record *record, const char *name, const char *aspect, int32_t head, const float *values, int32_t rows, int32_t columns,
                int32_t stride) {
  if (!record) return;
  size_t width = columns ? (size_t)columns : 1;
  record->quantities = with_room(record->quantities, record->count + 1, &record->room, sizeof *record->quantities);
  Quantity *q = record->quantities[record->count++] = need(sizeof *q + (size_t)rows * width * sizeof(float));
  int end = snprintf(q->address, sizeof q->address, "%s%s%s%s", record->place, *record->place ? "." : "", name, aspect);
  if (head >= 0) snprintf(q->address + end, sizeof q->address - (size_t)end, ".h%d", head);
  q->rows = rows, q->columns = columns;
  for (size_t r = 0; r < (size_t)rows; r++) memcpy(q->values + r * width, values + r * (size_t)stride, width * sizeof(float));
}

// For the host. After the last quantity comes NULL.
Record *record_new(void) { return need(sizeof(Record)); }
const Quantity *record_quantity(const Record *r, int32_t n) { return n < r->count ? r->quantities[n] : NULL; }
void record_free(Record *r) {
  for (int32_t n = 0; n < r->count; n++) let_go(r->quantities[n]);
  let_go(r->quantities);
  let_go(r);
}
