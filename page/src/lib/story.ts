/** The story of a sentence: scenes, each a place on the page, and what is lit in each, picture after picture. */

import type { Pointed } from "./focus.svelte";
import { percent, shown } from "./format";
import { fill, type Messages } from "./messages";
import { towers } from "./plan";
import type { Machine, Run } from "./types";

export interface Picture {
  lit: string[]; // blocks; the first is brought into view
  pointed?: Pointed;
  step?: number;
  fly?: { text: string; from: string; to: string }; // a token on its way between two elements, by selector
}
export interface Scene {
  title: string;
  says: string;
  seconds: number;
  attention: string; // drawn between the towers
  tokens: "S" | "T"; // which are written beside the words
  pictures: Picture[]; // the last one stays
}

const MOST = 24; // pictures of a scene

/** Up to MOST of them, the last one included. */
const few = (pictures: Picture[]): Picture[] =>
  pictures.filter((_, i) => (pictures.length - 1 - i) % Math.ceil(pictures.length / MOST) === 0);

/** `mostRead` is the source row that the first word reads most from: a matter of numbers that may still be on their way. */
export function scenesOf(machine: Machine, run: Run, t: Messages, mostRead: number): Scene[] {
  const both = towers(machine);
  const scene = (
    name: string,
    seconds: number,
    pictures: Picture[],
    {
      attention = "",
      tokens = "S" as "S" | "T",
      ...places
    }: Record<string, string | number> & { tokens?: "S" | "T"; attention?: string } = {},
  ): Scene => {
    const [title, says] = t.scenes[name] ?? ["", ""];
    return { title, says: fill(says, places), seconds, attention, tokens, pictures: few(pictures) };
  };
  const input = both.enc.length ? "src" : "tgt";
  const axis = both.enc.length ? "S" : "T";
  const read = both.enc.length ? run.source : run.target;
  const sweep = (lit: string[]) => read.map((_, row): Picture => ({ lit, pointed: { axis, row } }));
  const scenes = [
    scene(
      "tokens",
      6,
      read.map(
        ({ token }, row): Picture => ({
          lit: [input],
          pointed: { axis, row },
          fly: { text: shown(token), from: "#text", to: `#block-${input} .names` },
        }),
      ),
      { n: read.length, tokens: axis },
    ),
    scene("rows", 6, sweep([input]), { D: machine.sizes.D ?? 0, tokens: axis }),
  ];
  const words = run.steps.length - 1;
  if (both.enc.length) {
    const layers = both.enc.filter(({ kind }) => kind === "layer").map(({ id }) => id);
    const row = Math.floor((read.length - 1) / 2);
    const risen = ["src", ...layers].map(
      (id, i): Picture => ({ lit: [id, ...["src", ...layers].slice(0, i)], pointed: { axis: "S", row } }),
    );
    scenes.push(
      scene("read", 8, sweep([...(both.dec.length ? ["cross"] : []), layers[0] ?? ""]), {
        attention: `${layers[0]}.self`,
      }),
      scene("layers", 7, risen, { layers: layers.length }),
    );
    if (both.dec.length) scenes.push(scene("memory", 4, sweep(["memory"])));
  }
  if (both.dec.length && words >= 0) {
    const layers = both.dec.filter(({ kind }) => kind === "layer").map(({ id }) => id);
    const taken = run.steps[0]?.best.find((candidate) => candidate.taken);
    const word = shown(run.steps[0]?.token ?? "");
    const all = ["tgt", ...layers, ...both.dec.map(({ id }) => id).slice(layers.length + 1)];
    const start = run.target[0]?.token ?? "";
    scenes.push(
      scene(
        "begin",
        6,
        ["tgt", layers[0] ?? ""].map((id): Picture => ({ lit: [id, "tgt"], step: 0 })),
        { attention: `${layers[0]}.self`, tokens: "T", start },
      ),
    );
    if (both.enc.length)
      scenes.push(
        scene(
          "cross",
          7,
          [
            { lit: ["memory"], step: 0 },
            { lit: ["cross", "memory", ...layers], step: 0 },
          ],
          { attention: `${layers.at(-1)}.cross`, word, most: shown(run.source[mostRead]?.token ?? "") },
        ),
      );
    scenes.push(
      scene(
        "choose",
        6,
        [
          { lit: [...layers, "dec.out"], step: 0 },
          { lit: ["out", "dec.out"], step: 0 },
        ],
        { word, p: percent(taken?.p ?? 0), tokens: "T" },
      ),
      scene(
        "feed",
        10,
        run.steps.map(
          ({ token }, step): Picture => ({
            lit: all,
            step,
            ...(step < words ? { fly: { text: shown(token), from: "#block-out", to: "#block-tgt .names" } } : {}),
          }),
        ),
        { tokens: "T", attention: both.enc.length ? `${layers.at(-1)}.cross` : "" },
      ),
    );
  }
  if (run.classes.length) scenes.push(scene("classes", 5, [{ lit: ["out"] }]));
  return [...scenes, scene("end", 4, [{ lit: [] }], { tokens: axis })];
}
