/** The story of a translation. Each scene is a series of frames that highlight blocks and tokens. */

import type { Pointed } from "./focus.svelte";
import { percent } from "./format";
import { fill, type Messages } from "./messages";
import { type Block, towers } from "./plan";
import type { Machine, Run } from "./types";

/** A token being animated into its row of a block. */
interface Flight {
  text: string;
  from: string; // the CSS selector of the element where the token starts
  block: string;
  share: number; // the row's vertical position, as a fraction of the block's height
}
export interface Frame {
  lit: string[]; // highlighted blocks, and "cross" for the attention between the stacks; the page scrolls to the first
  pointed?: Pointed;
  step?: number;
  fly?: Flight;
}
interface Scene {
  title: string;
  text: string;
  seconds: number;
  attention: string; // the attention sub-layer to display; empty for the user's choice
  tokens: "S" | "T"; // the tokens listed on the card: source or target
  frames: Frame[];
}

const MOST = 24; // frames per scene

/** Samples the frames evenly, always including the last. */
const thinned = (frames: Frame[]): Frame[] =>
  frames.filter((_, i) => (frames.length - 1 - i) % Math.ceil(frames.length / MOST) === 0);
const layersOf = (blocks: Block[]) => blocks.filter(({ kind }) => kind === "layer").map(({ id }) => id);

interface Focus {
  step: number; // the step that the story follows
  mostAttended: number; // the source token that this step attends to most; -1 until the weights are loaded
  label: (token: string) => string;
}

export function scenesOf(machine: Machine, run: Run, t: Messages, { step, mostAttended, label }: Focus): Scene[] {
  const { enc, dec } = towers(machine);
  const [first, last] = [layersOf(enc.length ? enc : dec), layersOf(dec)];
  const axis = enc.length ? "S" : "T";
  const read = (enc.length ? run.source : run.target).map(({ token }) => label(token));
  const input = enc.length ? "src" : "tgt";
  const scene = (name: string, seconds: number, frames: Frame[], places: Record<string, string | number> = {}) => {
    const [title, text] = t.scenes[name] ?? ["", ""];
    const tokens: "S" | "T" = axis;
    return { title, text: fill(text, places), seconds, attention: "", tokens, frames: thinned(frames) };
  };
  const middle: Pointed = { axis, row: Math.floor((read.length - 1) / 2) };
  /** Highlights each row in turn, then the middle one. */
  const sweep = (...lit: string[]): Frame[] => [
    ...read.map((_, row): Frame => ({ lit, pointed: { axis, row } })),
    { lit, pointed: middle },
  ];
  const tokens = sweep(input).map((frame, row): Frame => {
    const text = read[row];
    const share = (row + 0.5) / read.length;
    return text === undefined ? frame : { ...frame, fly: { text, from: "#text", block: input, share } };
  });

  const scenes: Scene[] = [
    scene("tokens", 6, tokens, { n: read.length }),
    scene("rows", 6, sweep(input), { D: machine.sizes.D ?? 0 }),
  ];
  if (enc.length) {
    const risen = [input, ...first].map(
      (id, i): Frame => ({ lit: [id, input, ...first.slice(0, i)], pointed: middle }),
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
    const at = (...lits: string[][]): Frame[] => lits.map((lit) => ({ lit, step }));
    const rows = run.target.length;
    const feed = run.steps.map(({ token }, step): Frame => {
      const fly = { text: label(token), from: "#block-out", block: "tgt", share: (step + 1.5) / rows };
      return { lit: ["out", "tgt", ...last, "dec.out"], step, ...(step + 1 < rows ? { fly } : {}) };
    });
    const begin = scene("begin", 6, at(["tgt"], [last[0] ?? "", "tgt"]), { start: label(run.target[0]?.token ?? "") });
    scenes.push({ ...begin, tokens: "T" });
    if (enc.length) {
      const most = label(run.source[mostAttended]?.token ?? "");
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
