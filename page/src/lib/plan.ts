/** The structure of the model, derived from the list of its tensors. */

import type { Messages } from "./messages";
import type { Machine, Run, Stage } from "./types";

/** A block in the overview, with the tensors that it displays as strips. */
export interface Block {
  id: string;
  kind: "embedding" | "layer" | "memory" | "rows" | "words";
  strips: { part: string; address: string }[];
}

export interface Part {
  name: string; // the sub-layer: self, masked, cross, ffn or ssru; empty outside the layers
  stages: Stage[];
}

/** Returns the blocks of the encoder and the decoder. Either list may be empty. */
export function towers(machine: Machine): { enc: Block[]; dec: Block[] } {
  const known = new Set(machine.stages.map((stage) => stage.address));
  const block = (id: string, kind: Block["kind"], ...strips: string[]): Block[] => {
    const there = strips.filter((address) => known.has(address));
    return there.length ? [{ id, kind, strips: there.map((address) => ({ part: partOf(address), address })) }] : [];
  };
  const layers = (side: "enc" | "dec"): Block[] =>
    Array.from({ length: machine.layers[side] }, (_, n) => {
      const ends = ["self", "ssru", "cross", "ffn"].map((part) =>
        machine.norm === "pre" ? `${side}.${n}.${part}.sum` : `${side}.${n}.${part}.norm.out`,
      );
      // Decoder sub-layers have different inputs, so each gets a strip. Encoder layers get one strip, for their output.
      return block(`${side}.${n}`, "layer", ...(side === "enc" && machine.shape !== "encoder" ? ends.slice(-1) : ends));
    }).flat();
  const out = block("out", "words", "out.prob");
  const encoder = [...block("src", "embedding", "enc.in"), ...layers("enc"), ...block("memory", "memory", "memory")];
  if (machine.shape === "encoder") return { enc: [...encoder, ...out], dec: [] };
  return {
    enc: encoder,
    dec: [...block("tgt", "embedding", "dec.in"), ...layers("dec"), ...block("dec.out", "rows", "dec.out"), ...out],
  };
}

/** Whether a tensor is a parameter or is computed only from parameters, and so is independent of the input. */
export const isStored = (stage: Stage | undefined): boolean =>
  stage?.kind === "parameter" || stage?.kind === "constant";

const partOf = (address: string): string => {
  const part = address.split(".")[2] ?? "";
  return part === "self" && address.startsWith("dec.") ? "masked" : part;
};

const INSIDE: Record<string, (address: string) => boolean> = {
  src: (a) => a.startsWith("src.") || a === "enc.in",
  tgt: (a) => a.startsWith("tgt.") || a === "dec.in",
  memory: (a) => a.startsWith("enc.norm.") || a === "memory",
  "dec.out": (a) => a.startsWith("dec.norm.") || a === "dec.out",
  out: (a) => a.startsWith("out."),
};

/** Returns the parts of a block, in order of computation. */
export function partsOf(machine: Machine, id: string): Part[] {
  const inside = INSIDE[id] ?? ((address: string) => address.startsWith(`${id}.`));
  const parts: Part[] = [];
  for (const stage of machine.stages) {
    if (isStored(stage) || !inside(stage.address)) continue;
    const name = /^(enc|dec)\.\d/.test(stage.address) ? partOf(stage.address) : "";
    const last = parts.at(-1);
    if (last && last.name === name) last.stages.push(stage);
    else parts.push({ name, stages: [stage] });
  }
  return parts;
}

/** Whether a tensor is a detail that the paper's formulas omit, such as a step of layer norm or an int8 scale. */
export const isDetail = (address: string): boolean =>
  /\.(mean|var|normed|scale|whole|product)$/.test(address.replace(/\.h\d+$/, ""));

/** Returns the head that a tensor belongs to, such as 3 for enc.0.self.Q.h3, or null if all heads share the tensor. */
export const headOf = (address: string): number | null => {
  const match = /\.h(\d+)$/.exec(address);
  return match ? Number(match[1]) : null;
};

/** Returns the block that contains a tensor, or an empty string if no block does. */
export function blockOf(address: string): string {
  const layer = /^(enc|dec)\.\d+(?=\.)/.exec(address);
  if (layer) return layer[0];
  return Object.keys(INSIDE).find((id) => INSIDE[id]?.(address)) ?? "";
}

export function titleOf(id: string, t: Messages, classes: boolean): string {
  const layer = /^(?:enc|dec)\.(\d+)$/.exec(id);
  if (layer) return `${t.layer} ${layer[1]}`;
  const out = classes ? t.classes : t.logits;
  return { src: t.embedding, tgt: t.embedding, memory: t.memory, "dec.out": t.decoderOut, out }[id] ?? id;
}

/** Returns the blocks that provide a block's inputs and the blocks that use its outputs, in order of computation. */
export function neighboursOf(machine: Machine, id: string): { from: string[]; to: string[] } {
  const [from, to] = [new Set<string>(), new Set<string>()];
  const known = new Map(machine.stages.map((stage) => [stage.address, stage]));
  for (const stage of machine.stages) {
    const block = blockOf(stage.address);
    for (const input of stage.inputs) {
      const source = isStored(known.get(input)) ? "" : blockOf(input);
      if (!source || !block || source === block || isStored(stage)) continue;
      if (block === id) from.add(source);
      if (source === id) to.add(block);
    }
  }
  return { from: [...from], to: [...to] };
}

/** Returns the tokens along an axis: S for the source, T for the target. */
export function tokensOf(run: Run, axis: string | undefined): string[] {
  if (axis === "S") return run.source.map(({ token }) => token);
  if (axis === "T") return run.target.map(({ token }) => token);
  return [];
}

/** Returns a tensor's symbol in formulas, which is usually the last part of its address. */
export function symbolOf(address: string): string {
  const parts = address.split(".").filter((part) => !/^h?\d+$/.test(part));
  const last = parts.at(-1) ?? "";
  return ["out", "in", "sum", "ids", "factor", "whole", "product"].includes(last) && parts.length > 1
    ? `${parts.at(-2)}.${last}`
    : last;
}

/** Returns the role of a symbol (query, key, value or weight), which determines its colour. */
export const roleOf = (symbol: string): string =>
  ({ Q: "q", WQ: "q", K: "k", WK: "k", V: "v", WV: "v", weights: "w", scores: "w", scaled: "w", masked: "w" })[
    symbol
  ] ?? "";
