import type { Change } from "./types";

/** The view, which is stored in the URL fragment. */
export interface View {
  text: string;
  model: string;
  sentence: number;
  step: number; // the decoding step; -1 for the step of the least certain word
  word: string; // a word in the translation, which takes precedence over `step` unless empty
  rival: string; // the token to compare the chosen token with; empty for the runner-up
  other: string; // the text that the causal map takes its rows from
  lesson: string; // the open lesson and its section, such as nan/2; empty if none is open
  open: string; // the open block; empty if none is open
  head: number;
  row: number; // the selected source token; -1 for the token that the step attends to most
  attention: string; // the displayed attention sub-layer, such as dec.1.cross; empty for the last cross-attention
  only: number; // the displayed attention head; -1 for the mean over all heads
  cards: string[]; // open cards: whatif, tokens, search, learning, logits, parts, without, layers, heads, rows
  story: number; // the scene of the story, starting at 1; 0 if the story is closed
  tour: number; // the stop of the tour, starting at 1; 0 if the tour is closed
  at: string; // the address of the open receipt; empty if none is open
  numbers: string; // float64, or empty for the engine's arithmetic
  changes: Change[];
}

export const EMPTY: View = {
  text: "",
  model: "",
  sentence: 0,
  step: -1,
  word: "",
  rival: "",
  other: "",
  lesson: "",
  open: "",
  head: 0,
  row: -1,
  attention: "",
  only: -1,
  cards: [],
  story: 0,
  tour: 0,
  at: "",
  numbers: "",
  changes: [],
};

export function readFragment(fragment: string): Partial<View> {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ""));
  const view: Partial<View> = {};
  for (const name of [
    "text",
    "model",
    "word",
    "rival",
    "other",
    "lesson",
    "open",
    "attention",
    "at",
    "numbers",
  ] as const) {
    const value = parameters.get(name);
    if (value !== null) view[name] = value;
  }
  for (const name of ["sentence", "step", "head", "row", "only", "story", "tour"] as const) {
    const value = Number(parameters.get(name) ?? "");
    if (parameters.has(name) && Number.isInteger(value) && value >= 0) view[name] = value;
  }
  const changes = parameters.getAll("if").map((change): Change => {
    const colon = change.indexOf(":");
    return colon < 0 ? [change, ""] : [change.slice(0, colon), change.slice(colon + 1)];
  });
  if (changes.length) view.changes = changes;
  const cards = parameters.getAll("card");
  if (cards.length) view.cards = cards;
  return view;
}

export function writeFragment(view: View, defaultModel: string): string {
  const parameters = new URLSearchParams();
  parameters.set("text", view.text);
  if (view.model !== defaultModel) parameters.set("model", view.model);
  for (const name of ["sentence", "head", "story", "tour"] as const)
    if (view[name]) parameters.set(name, String(view[name]));
  for (const name of ["step", "row", "only"] as const) if (view[name] >= 0) parameters.set(name, String(view[name]));
  for (const name of ["word", "rival", "other", "lesson", "open", "attention", "at", "numbers"] as const)
    if (view[name]) parameters.set(name, view[name]);
  for (const card of view.cards) parameters.append("card", card);
  for (const [option, words] of view.changes) parameters.append("if", `${option}:${words}`);
  return `#${parameters.toString()}`;
}
