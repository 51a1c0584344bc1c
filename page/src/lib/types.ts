/** The API's requests and responses. Each number is returned with its address or can be requested by address. */

export interface Stage {
  address: string;
  axes: string;
  kind: "input" | "parameter" | "constant" | "value" | "aggregate" | "choice";
  operation: string;
  inputs: string[];
  formula: string;
  latex: string;
  place: string;
  says: string;
  code: string;
}

export interface Machine {
  name: string;
  shape: "encoder-decoder" | "encoder" | "decoder";
  source_language: string;
  target_language: string;
  parameters: number;
  engine: string;
  dtype: string;
  int8: boolean;
  norm: "pre" | "post";
  layers: { enc: number; dec: number };
  sizes: Record<string, number>;
  beam: number;
  special: { start: string; end: string }; // the start and end tokens; empty if the model has none
  stages: Stage[];
}

export interface Token {
  token: string;
  id: number;
  start?: number;
  end?: number;
  unknown?: boolean;
}

/** JSON cannot represent NaN or infinity, so the server sends them as strings. */
export type Num = number | "NaN" | "inf" | "-inf";

interface Candidate {
  token: string;
  id: number;
  p: Num;
  address: string;
  taken: boolean;
}

export interface Step {
  token: string;
  id: number;
  log_p: { address: string; value: Num };
  best: Candidate[];
}

export interface LayerChange {
  layer: string;
  address: string;
  largest: Num;
  relative: Num; // relative to the tensor's largest absolute value before the change
  before: Num;
  after: Num;
}

export interface Changed {
  changes: { option: string; says: string }[];
  before: string;
  after: string;
  stopped: boolean;
  shared_steps: number;
  layers: LayerChange[];
  kl: Num[];
  first_nan: string | null;
  first_infinite: string | null;
  notes: string[];
}

/** A possible mistake: a fact that is missing from the source or the translation, or that differs between them. */
export interface FactWarning {
  reason: string;
  source: string;
  target: string; // empty if the fact is missing from the translation
}

export interface Run {
  text: string;
  translation: string;
  sentences: { source: string; given: string; text: string }[];
  sentence: number;
  read: string;
  written: string;
  empty: boolean;
  stopped: boolean;
  unknown: string[];
  sizes: Record<string, number>;
  source: Token[];
  target: Token[];
  steps: Step[];
  classes: { name: string; p: Num; address: string }[];
  changed: Changed | null;
}

interface Factor {
  address: string;
  value: Num;
}

export interface Receipt {
  address: string;
  quantity: string;
  index: number[];
  tokens: string[];
  kind: Stage["kind"];
  says: string;
  place: string;
  formula: string;
  latex: string;
  formula_here: string;
  working: string[];
  code: string;
  value: Num;
  dtype: string;
  recomputed?: Num; // standalone files omit this and the next three fields
  difference?: Num;
  tolerance?: Num;
  agrees?: boolean;
  edited: boolean;
  terms: {
    kind: "product" | "plain" | "square" | "exp";
    rows: { factors: Factor[]; value: Num; so_far: Num }[];
    sum: Num;
  } | null;
  slips: { slip: string; value: Num }[];
  made_from: Factor[];
  made_from_count: number;
  used_by: string[];
  copies: string[];
  stored: Record<string, unknown> | null;
  inputs?: string[]; // the tensors that the number is computed from
  why?: string; // in standalone files, the command that prints the terms
}

export interface SearchNode {
  word: string;
  parent: number;
  depth: number;
  log_prob: Num;
  total: Num;
  score: Num;
  rank: number;
  fate: "kept" | "finished" | "cut" | "dropped";
  why: string;
}

interface Found {
  text: string;
  log_p: Num;
  score: Num;
}

export interface Search {
  beam: number;
  length_penalty: number;
  best: number;
  prefix: string[];
  nodes: SearchNode[];
  found: Found | null;
  greedy: Found | null;
}

/** How a token was chosen. `tempered` is its probability after temperature scaling, and `drawn` after all settings. */
export interface Choice {
  step: number;
  largest: Num;
  log_sum_exp: Num;
  tokens: {
    token: string;
    id: number;
    logit_address: string;
    logit: Num;
    address: string;
    p: Num;
    tempered: Num;
    drawn: Num;
    taken: boolean;
    forbidden: boolean;
  }[];
  left: number;
  others: { count: number; p: Num; tempered: Num; drawn: Num };
}

/** Why a step chose `this` over `that`: the difference between their logits, as an exact sum of parts. */
export interface Why {
  row: number;
  this: string;
  that: string;
  difference: Num;
  origins: Origin[]; // the sums of the parts by origin, largest first
  words: { word: string; start: number; end: number; value: Num }[]; // the source words
  parts: WhyPart[];
  layers: { after: string; difference: Num; tokens: { token: string; prob: Num }[] }[];
}

/** The translation with a word or head removed, and the drop in each token's log-probability. */
export interface Removal {
  name: string; // a source word, or a head such as dec.1.cross.h6
  translation: string;
  losses: Num[]; // one per step
}

/** The effects of deleting each source word from the text, and of masking it in every attention layer. */
export interface Without {
  deleted: Removal[];
  hidden: Removal[];
}

/** How the difference between two logits changes when a single row is replaced with a row from another text's run. */
export interface CausalMap {
  other: string;
  difference: Num;
  other_difference: Num;
  source: string[];
  other_source: string[];
  target: string[];
  layers: { name: string; side: Side; moved: Num[] }[];
}

export type Side = "source" | "target" | null; // null if neither applies

export interface Origin {
  side: Side;
  row: number | null;
  name: string;
  value: Num;
}

export interface WhyPart {
  name: string; // such as dec.1.cross.h0[5]
  value: Num;
  side: Side;
  row: number | null;
  token: string | null;
  origin: string;
}

export interface Sampling {
  step: number;
  temperature: number;
  top_k: number;
  top_p: number;
}

interface Merge {
  left: string;
  right: string;
  rank: number;
  symbols: string[];
}

export interface Tokenising {
  text: string;
  prepared: string;
  alike: {
    quantity: string;
    table: string;
    tokens: string[];
    cosines: number[][];
    nearest: { token: string; near: { token: string; cosine: number }[] }[];
  } | null;
  words: { text: string; symbols: string[]; merges: Merge[]; scores: (number | null)[]; pieces: Token[] }[];
}

export type Change = [option: string, words: string];

/** Everything that determines a run. */
export interface Query {
  text: string;
  model: string;
  sentence: number;
  changes: Change[];
  numbers: string;
}

// --- learning --------------------------------------------------------------------------------------------------------

export interface CurvesBlock {
  kind: "curves";
  title: string;
  lines: { name: string; points: [Num, Num][]; marked: boolean }[];
  minutes: [Num, Num][];
  from_zero: boolean;
}

interface Checkpoint {
  step: number | null; // null for the final model
  says: string;
  ended: boolean;
  log_p: Num;
  p: Num[];
  reads: string[];
  share: Num[];
}

export interface Checkpoints {
  text: string;
  tokens: string[];
  left_out: number;
  ages: Checkpoint[];
}

export interface Learning {
  ages: Checkpoints | null;
  curves: CurvesBlock[];
}

export interface Forced {
  tokens: { reads: string; should_say: string; address: string; p: Num; loss: Num; rank: number; instead: string }[];
  sum: Num;
  mean: Num;
  nothing: Num;
}
