/** The story of a sentence: scenes, each a place on the page, and what is lit in each, picture after picture. */

import type { Pointed } from "./focus.svelte";
import { percent } from "./format";
import { fill, type Messages } from "./messages";
import { type Block, towers } from "./plan";
import type { Machine, Run } from "./types";

/** A token on its way to a row of a block. */
export interface Flight {
  text: string;
  from: string; // a selector
  block: string;
  share: number; // of the block's height
}
export interface Picture {
  lit: string[]; // blocks; the first is brought into view; "cross" is what stands between the towers
  pointed?: Pointed;
  step?: number;
  fly?: Flight;
}
export interface Scene {
  title: string;
  says: string;
  seconds: number;
  attention: string; // drawn between the towers; empty: as usual
  tokens: "S" | "T"; // which are written beside the words
  pictures: Picture[]; // the last one stays
}

const MOST = 24; // pictures of a scene

/** Up to MOST of them, the last one included. */
const few = (pictures: Picture[]): Picture[] =>
  pictures.filter((_, i) => (pictures.length - 1 - i) % Math.ceil(pictures.length / MOST) === 0);
const layersOf = (blocks: Block[]) => blocks.filter(({ kind }) => kind === "layer").map(({ id }) => id);

export interface Told {
  step: number; // of the word whose choice is told
  mostRead: number; // the source token that it attends to most; -1 while the weights are on their way
  label: (token: string) => string;
}

export function scenesOf(machine: Machine, run: Run, t: Messages, { step, mostRead, label }: Told): Scene[] {
  const { enc, dec } = towers(machine);
  const [first, last] = [layersOf(enc.length ? enc : dec), layersOf(dec)];
  const axis = enc.length ? "S" : "T";
  const read = (enc.length ? run.source : run.target).map(({ token }) => label(token));
  const input = enc.length ? "src" : "tgt";
  const scene = (name: string, seconds: number, pictures: Picture[], places: Record<string, string | number> = {}) => {
    const [title, says] = t.scenes[name] ?? ["", ""];
    const tokens: "S" | "T" = axis;
    return { title, says: fill(says, places), seconds, attention: "", tokens, pictures: few(pictures) };
  };
  /** Every row in turn; one in the middle stays. */
  const middle: Pointed = { axis, row: Math.floor((read.length - 1) / 2) };
  const sweep = (...lit: string[]): Picture[] => [
    ...read.map((_, row): Picture => ({ lit, pointed: { axis, row } })),
    { lit, pointed: middle },
  ];
  const tokens = sweep(input).map((picture, row): Picture => {
    const text = read[row];
    const share = (row + 0.5) / read.length;
    return text === undefined ? picture : { ...picture, fly: { text, from: "#text", block: input, share } };
  });

  const scenes: Scene[] = [
    scene("tokens", 6, tokens, { n: read.length }),
    scene("rows", 6, sweep(input), { D: machine.sizes.D ?? 0 }),
  ];
  if (enc.length) {
    const risen = [input, ...first].map(
      (id, i): Picture => ({ lit: [id, input, ...first.slice(0, i)], pointed: middle }),
    );
    scenes.push(
      { ...scene("read", 8, sweep(...(dec.length ? ["cross"] : []), first[0] ?? "")), attention: `${first[0]}.self` },
      scene("layers", 7, risen, { layers: first.length }),
    );
  }
  if (enc.length && dec.length) scenes.push(scene("memory", 4, sweep("memory")));

  const chosen = run.steps[step];
  if (dec.length && chosen) {
    const word = label(chosen.token);
    const p = percent(chosen.best.find(({ taken }) => taken)?.p ?? Number.NaN);
    const at = (...lits: string[][]): Picture[] => lits.map((lit) => ({ lit, step }));
    const rows = run.target.length;
    const feed = run.steps.map(({ token }, step): Picture => {
      const fly = { text: label(token), from: "#block-out", block: "tgt", share: (step + 1.5) / rows };
      return { lit: ["out", "tgt", ...last, "dec.out"], step, ...(step + 1 < rows ? { fly } : {}) };
    });
    const begin = scene("begin", 6, at(["tgt"], [last[0] ?? "", "tgt"]), { start: label(run.target[0]?.token ?? "") });
    scenes.push({ ...begin, tokens: "T" });
    if (enc.length) {
      const most = label(run.source[mostRead]?.token ?? "");
      scenes.push(scene("cross", 7, at(["memory"], ["cross", "memory", ...last]), { word, most }));
    }
    scenes.push(
      { ...scene("choose", 6, at([...last, "dec.out"], ["out", "dec.out"]), { word, p }), tokens: "T" },
      { ...scene("feed", 10, feed), tokens: "T" },
    );
  }
  if (run.classes.length) scenes.push(scene("classes", 5, [{ lit: ["out"] }]));
  return [...scenes, scene("end", 4, [{ lit: [] }])];
}
