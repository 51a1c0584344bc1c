import type { Change } from "./types";

/** What the address bar holds after #: all that brings this very view back. */
export interface View {
  text: string;
  model: string;
  sentence: number;
  step: number;
  lesson: string; // its name and the number of its section, nan/2; empty: none
  open: string;
  head: number;
  row: number; // of the source, that stands out; -1: the one that the step reads most from
  story: number; // its scene, from 1; 0: none
  at: string;
  numbers: string; // "" as translating computes, or float64
  changes: Change[];
}

export const EMPTY: View = {
  text: "",
  model: "",
  sentence: 0,
  step: 0,
  lesson: "",
  open: "",
  head: 0,
  row: -1,
  story: 0,
  at: "",
  numbers: "",
  changes: [],
};

export function readFragment(fragment: string): Partial<View> {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const view: Partial<View> = {};
  for (const name of ["text", "model", "lesson", "open", "at", "numbers"] as const) {
    const value = given.get(name);
    if (value !== null) view[name] = value;
  }
  for (const name of ["sentence", "step", "head", "row", "story"] as const) {
    const value = Number(given.get(name) ?? "");
    if (given.has(name) && Number.isInteger(value) && value >= 0) view[name] = value;
  }
  const changes = given.getAll("if").map((change): Change => {
    const colon = change.indexOf(":");
    return colon < 0 ? [change, ""] : [change.slice(0, colon), change.slice(colon + 1)];
  });
  if (changes.length) view.changes = changes;
  return view;
}

export function writeFragment(view: View, defaultModel: string): string {
  const told = new URLSearchParams();
  told.set("text", view.text);
  if (view.model !== defaultModel) told.set("model", view.model);
  for (const name of ["sentence", "step", "head", "story"] as const) if (view[name]) told.set(name, String(view[name]));
  if (view.row >= 0) told.set("row", String(view.row));
  for (const name of ["lesson", "open", "at", "numbers"] as const) if (view[name]) told.set(name, view[name]);
  for (const [option, words] of view.changes) told.append("if", `${option}:${words}`);
  return `#${told.toString()}`;
}
