// Somebody looks: every quantity of a pass, copied under its address (enc.0.self.Q.h1) as the engine has it in memory.
// Nobody looking is a NULL, and costs a branch.

typedef struct { char address[64]; int32_t rows, columns; float *values; } Quantity;

struct Record {
  char place[48]; // where the pass is: enc.0.self
  Quantity *quantities;
  int32_t count, room;
};

static char *append(char *to, const char *text) {
  while (*text) *to++ = *text++;
  *to = 0;
  return to;
}

static char *append_number(char *to, int32_t n) {
  if (n >= 10) to = append_number(to, n / 10);
  *to++ = (char)('0' + n % 10);
  *to = 0;
  return to;
}

// What is recorded from now on belongs to side.n.part; n < 0: to the side alone.
static void enter(Record *record, const char *side, int32_t n, const char *part) {
  if (!record) return;
  char *to = append(record->place, side);
  if (n >= 0) append(append(append_number(append(to, "."), n), "."), part);
}

// x.scale, of x and .scale.
typedef struct { char text[24]; } Name;
static Name name_of(const char *quantity, const char *aspect) {
  Name name;
  append(append(name.text, quantity), aspect);
  return name;
}

// place.name.hH, or place.name where head < 0. Rows lie `stride` apart; no columns: a vector.
static void tap(Record *record, const char *name, int32_t head, const float *values, int32_t rows, int32_t columns, int32_t stride) {
  if (!record) return;
  record->quantities = with_room(record->quantities, record->count + 1, &record->room, sizeof *record->quantities);
  Quantity *q = &record->quantities[record->count++];
  char *to = append(q->address, record->place);
  to = append(to == q->address ? to : append(to, "."), name);
  if (head >= 0) append_number(append(to, ".h"), head);
  int32_t width = columns ? columns : 1;
  q->rows = rows;
  q->columns = columns;
  q->values = need((size_t)rows * (size_t)width * sizeof(float));
  for (int32_t r = 0; r < rows; r++)
    memcpy(q->values + (size_t)r * (size_t)width, values + (size_t)r * (size_t)stride, (size_t)width * sizeof(float));
}

// The columns of each head by themselves; no heads: all of them together.
static void tap_heads(Record *record, const char *name, int32_t heads, const float *values, int32_t rows, int32_t columns) {
  if (!heads) tap(record, name, -1, values, rows, columns, columns);
  for (int32_t h = 0; record && h < heads; h++) tap(record, name, h, values + h * (columns / heads), rows, columns / heads, columns);
}

Record *record_new(void) { return need(sizeof(Record)); }
int32_t record_count(const Record *r) { return r->count; }
const char *record_address(const Record *r, int32_t n) { return r->quantities[n].address; }
int32_t record_rows(const Record *r, int32_t n) { return r->quantities[n].rows; }
int32_t record_columns(const Record *r, int32_t n) { return r->quantities[n].columns; }
const float *record_values(const Record *r, int32_t n) { return r->quantities[n].values; }
void record_free(Record *r) {
  for (int32_t n = 0; n < r->count; n++) let_go(r->quantities[n].values);
  let_go(r->quantities);
  let_go(r);
}
