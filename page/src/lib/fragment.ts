import type { Change } from "./types";

/** What the address bar holds after #: all that brings this very view back. */
export interface View {
  text: string;
  model: string;
  sentence: number;
  step: number; // of decoding; -1: the least certain word
  word: string; // of the translation, whose step is shown; empty: as `step` says
  rival: string; // a token that the step did not choose; empty: the runner-up
  other: string; // a text whose run is put in row by row
  lesson: string; // its name and the number of its section, nan/2; empty: none
  open: string;
  head: number;
  row: number; // the highlighted source token; -1: the one that the step attends to most
  attention: string; // drawn between the towers: dec.1.cross; empty: the last layer's cross-attention
  only: number; // the head drawn there; -1: the mean over heads
  cards: string[]; // unfolded: whatif, tokens, search, learning, logits, parts, without, layers, heads, rows
  story: number; // the scene, from 1; 0: none
  tour: number; // the stop, from 1; 0: none
  at: string;
  numbers: string; // "" as translating computes, or float64
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
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
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
    const value = given.get(name);
    if (value !== null) view[name] = value;
  }
  for (const name of ["sentence", "step", "head", "row", "only", "story", "tour"] as const) {
    const value = Number(given.get(name) ?? "");
    if (given.has(name) && Number.isInteger(value) && value >= 0) view[name] = value;
  }
  const changes = given.getAll("if").map((change): Change => {
    const colon = change.indexOf(":");
    return colon < 0 ? [change, ""] : [change.slice(0, colon), change.slice(colon + 1)];
  });
  if (changes.length) view.changes = changes;
  const cards = given.getAll("card");
  if (cards.length) view.cards = cards;
  return view;
}

export function writeFragment(view: View, defaultModel: string): string {
  const told = new URLSearchParams();
  told.set("text", view.text);
  if (view.model !== defaultModel) told.set("model", view.model);
  for (const name of ["sentence", "head", "story", "tour"] as const) if (view[name]) told.set(name, String(view[name]));
  for (const name of ["step", "row", "only"] as const) if (view[name] >= 0) told.set(name, String(view[name]));
  for (const name of ["word", "rival", "other", "lesson", "open", "attention", "at", "numbers"] as const)
    if (view[name]) told.set(name, view[name]);
  for (const card of view.cards) told.append("card", card);
  for (const [option, words] of view.changes) told.append("if", `${option}:${words}`);
  return `#${told.toString()}`;
}
