/** What the server would answer, from the data in a page that is one file. What needs the model is refused in words. */

import { copyOf, expressionOf, type Patterns, receiptOf } from "./arithmetic";
import { readAddress, type Tensor } from "./tensors";
import type { Agreement, Change, Choice, Kept, Machine, Run, Search, Tokenising } from "./types";
import { type Packed, Unpacked } from "./unpack";

export interface Filed {
  kind: "run";
  machine: Machine;
  run: Run;
  changes: Change[];
  agreement: Agreement | null;
  search: Search | null;
  choices: Choice[];
  kept: Kept[][];
  tokens: Tokenising | null;
  patterns: Patterns;
  tensors: Packed;
  again: string;
  edited: string[];
}

export interface Alone {
  data: Filed;
  part: (n: number) => Promise<Uint8Array>;
}

const alone = (globalThis as { vidrio?: Alone }).vidrio as Alone;
const { data } = alone;
const unpacked = new Unpacked(data.tensors);
const loaded = unpacked.load(alone.part);

/** An address in numbers: a token instead of a number is not read here, the page writes numbers. */
function whole(address: string): { name: string; place: number[]; step: number | null } {
  const { name, place, step } = readAddress(address);
  const stage = data.machine.stages.find((one) => one.address === name);
  const one = step !== null && stage?.axes.startsWith("T") && place.length < stage.axes.length;
  return { name, place: one ? [step, ...place] : place, step: data.run.by_steps ? step : null };
}

type Body = { address: string; step: number; kind: string };

export async function answer(path: string, body: object): Promise<unknown> {
  const { address, step, kind } = body as Body;
  switch (path) {
    case "machine":
      return data.machine;
    case "translate":
      return { translation: data.run.translation };
    case "run":
      return data.run;
    case "agreement":
      return data.agreement;
    case "search":
      return data.search;
    case "choose":
      return data.choices[step] ?? null;
    case "kept":
      return data.kept[step] ?? [];
    case "tokens":
      return data.tokens;
  }
  await loaded;
  const { name, place, step: at } = whole(address);
  if (path === "receipt") return receiptOf({ ...data, unpacked }, name, place, at);
  if (path === "copy") {
    const stage = data.machine.stages.find((one) => one.address === name);
    const e = stage && expressionOf(unpacked.reader(at), stage, place, data.patterns);
    return e ? copyOf(e, kind) : "";
  }
  throw new Error(path);
}

export async function tensors(addresses: string[]): Promise<Map<string, Tensor>> {
  await loaded;
  const found = new Map<string, Tensor>();
  for (const address of addresses) {
    const tensor = unpacked.tensor(address);
    if (tensor) found.set(address, tensor);
  }
  return found;
}

// For whoever opens the console, and for tests.
Object.assign(alone, { answer, tensors });
