// Interventions in the pass of a sentence: a source position is hidden from all attention, a head outputs zeros, or a
// row is replaced. The host passes a sequence of int32 words: each intervention's kind, place and number, followed by
// the new values if it replaces a row. No position may be hidden twice.

enum { HIDE, HEAD_OFF, SET_ROW, N_KINDS };

typedef struct { const int32_t *words; int32_t count; } Interventions;

// A place is the input of a stack or a sub-layer. Places are numbered in the order of the pass: enc.in, enc.0.self,
// enc.0.ffn, …, dec.in, dec.0.self (or ssru), dec.0.cross, dec.0.ffn, …
static int32_t decoder_place(const Model *m) { return has_encoder(m) ? 1 + 2 * m->size[N_ENCODER_LAYERS] : 0; }

static int has_heads(const Model *m, int32_t place) {
  int32_t first = decoder_place(m);
  if (place < first) return place % 2;
  int32_t part = (place - first) % 3;
  return place > first && ((part == 1 && !m->size[DECODER_CELL]) || (part == 2 && has_encoder(m)));
}

// Return the intervention after `one`, or the first one if it is NULL.
static const int32_t *next_intervention(const Model *m, Interventions of, const int32_t *one) {
  if (!one) return of.count ? of.words : NULL;
  one += one[0] == SET_ROW ? 3 + m->size[D_MODEL] : 3;
  return one < of.words + of.count ? one : NULL;
}

// Return the first place in the encoder that the interventions change, or else the place after the encoder.
static int32_t first_change(const Model *m, Interventions of) {
  int32_t first = decoder_place(m);
  for (const int32_t *one = NULL; (one = next_intervention(m, of, one));) {
    int32_t place = one[0] == HIDE ? 1 : one[1];
    first = place < first ? place : first;
  }
  return first;
}

// Return whether these interventions are valid: places, heads and rows exist, all values are finite, and at least one
// source position stays visible.
static int are_interventions(const Model *m, Interventions of, int32_t n_source) {
  const int32_t *c = m->size, *end = of.words + of.count;
  int32_t first = decoder_place(m), places = has_decoder(m) ? first + 1 + 3 * c[N_DECODER_LAYERS] : first, visible = n_source;
  for (const int32_t *one = of.words; one < end; one += one[0] == SET_ROW ? 3 + c[D_MODEL] : 3) {
    if (end - one < 3 || one[0] < 0 || one[0] >= N_KINDS || one[1] < 0 || one[1] >= places || one[2] < 0) return 0;
    if (one[0] == HEAD_OFF && (one[2] >= c[N_HEADS] || !has_heads(m, one[1]))) return 0;
    if (one[0] == HIDE && (one[2] >= n_source || --visible < 1)) return 0;
    if (one[0] != SET_ROW) continue;
    if (one[2] >= (one[1] < first ? n_source : c[MAX_POSITIONS]) || end - one < 3 + c[D_MODEL]) return 0;
    for (int32_t i = 0; i < c[D_MODEL]; i++) {
      float value;
      memcpy(&value, &one[3 + i], sizeof value);
      if (!(fabsf(value) <= 3.4e38f)) return 0;
    }
  }
  return of.count >= 0;
}
