/** What the server tells. Every number comes with its address, or is asked for by it. */

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
  whole_numbers: boolean;
  norm: "pre" | "post";
  layers: { enc: number; dec: number };
  sizes: Record<string, number>;
  beam: number;
  special: { start: string; end: string }; // tokens; empty where a model has none
  stages: Stage[];
}

export interface Token {
  token: string;
  id: number;
  start?: number;
  end?: number;
  unknown?: boolean;
}

/** JSON has no NaN and no infinity; the server writes them as words. */
export type Num = number | "NaN" | "inf" | "-inf";

export interface Candidate {
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
  relative: Num; // to the largest number of its quantity before
  before: Num;
  after: Num;
}

export interface Changed {
  changes: { asked: string; says: string }[];
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

/** Something that a text says and its translation does not, or the other way round. */
export interface Doubt {
  reason: string;
  source: string;
  target: string; // empty where it is missing from the translation
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
  milliseconds: { translate: number; glass: number };
  changed: Changed | null;
}

export interface Factor {
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
  computed: Num;
  recomputed: Num;
  difference: Num;
  tolerance: Num | null; // null where only the numbers are here, and not what rounding may do to them
  agrees: boolean;
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
  inputs?: string[]; // the quantities that it is made from
  why?: string; // the command that works it out, where only the numbers are here
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

export interface Found {
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

/** One choice of the next word; `tempered` and `drawn` are worked out from p, as the settings ask. */
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

/** Why a step took its token and not a rival: the difference of their logits as an exact sum. */
export interface Why {
  row: number;
  this: string;
  that: string;
  difference: Num;
  origins: Origin[]; // the parts added up by what they come from, the largest first
  words: { word: string; start: number; end: number; value: Num }[]; // of the source
  parts: WhyPart[];
  layers: { after: string; difference: Num; tokens: { token: string; prob: Num }[] }[];
}

/** Something taken out, the translation without it, and what each token's log-probability loses. */
export interface Taken {
  name: string; // a word of the source, or a head: dec.1.cross.h6
  translation: string;
  losses: Num[]; // by step
}

/** Without each word of the source in turn: deleted from the text, and hidden from all attention. */
export interface Without {
  deleted: Taken[];
  hidden: Taken[];
}

/** How far the difference of two logits moves with each row of another text's run. */
export interface CausalMap {
  other: string;
  difference: Num;
  other_difference: Num;
  source: string[];
  other_source: string[];
  target: string[];
  layers: { name: string; side: Side; moved: Num[] }[];
}

export type Side = "source" | "target" | null; // whose row was read

export interface Origin {
  side: Side;
  row: number | null;
  name: string;
  value: Num;
}

export interface WhyPart {
  name: string; // dec.1.cross.h0[5]
  value: Num;
  side: Side;
  row: number | null;
  token: string | null;
  origin: string;
}

export interface Drawing {
  step: number;
  temperature: number;
  top_k: number;
  top_p: number;
}

export interface Merge {
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

/** Which run: all that an answer depends on. */
export interface Asked {
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

export interface Age {
  step: number | null; // null: the model that was kept
  says: string;
  ended: boolean;
  log_p: Num;
  p: Num[];
  reads: string[];
  share: Num[];
}

export interface AgesData {
  text: string;
  tokens: string[];
  left_out: number;
  ages: Age[];
}

export interface Learning {
  ages: AgesData | null;
  curves: CurvesBlock[];
}

export interface Forced {
  tokens: { reads: string; should_say: string; address: string; p: Num; loss: Num; rank: number; instead: string }[];
  sum: Num;
  mean: Num;
  nothing: Num;
}
