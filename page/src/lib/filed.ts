/** What the server would answer, from the data in a page that is one file. What needs the model is refused in words. */

import { columnsOf, readAddress, readTensors, type Tensor } from "./tensors";
import type { Change, Choice, Machine, Receipt, Run, Search, Tokenising, Why } from "./types";

export interface Filed {
  kind: "run";
  machine: Machine;
  run: Run;
  changes: Change[];
  search: Search | null;
  choices: Choice[];
  whys: Why[]; // by step, with the runner-up as the rival
  tokens: Tokenising | null;
  again: string;
  edited: string[];
}

export interface Alone {
  data: Filed;
  numbers: () => Promise<Uint8Array>; // a safetensors file
}

const alone = (globalThis as { vidrio?: Alone }).vidrio as Alone;
const { data } = alone;
const loaded = alone
  .numbers()
  .then(({ buffer }) => (buffer.byteLength ? readTensors(buffer as ArrayBuffer) : new Map()));

/** One number with its formula and its inputs; what it comes to, term by term, is for `vidrio why`. */
async function receipt(address: string): Promise<Receipt> {
  const { name, place } = readAddress(address);
  const [tensor, stage] = [(await loaded).get(name), data.machine.stages.find((one) => one.address === name)];
  if (!stage) throw new Error(address);
  const [row, column] = place.length > 1 ? place : [0, place[0]];
  const value = tensor ? (tensor.data[(row ?? 0) * columnsOf(tensor) + (column ?? 0)] ?? Number.NaN) : Number.NaN;
  const token = (axis: string, n: number) => (axis === "S" ? data.run.source : axis === "T" ? data.run.target : [])[n];
  return {
    ...stage,
    address,
    quantity: name,
    index: place,
    tokens: [...stage.axes].map((axis, n) => token(axis, place[n] ?? 0)?.token ?? ""),
    formula_here: "",
    working: [],
    value,
    dtype: data.machine.dtype,
    computed: value,
    recomputed: value,
    difference: 0,
    tolerance: null,
    agrees: true,
    edited: data.edited.includes(name),
    terms: null,
    slips: [],
    made_from: [],
    made_from_count: 0,
    used_by: data.machine.stages.filter(({ inputs }) => inputs.includes(name)).map((one) => one.address),
    copies: [],
    stored: null,
    why: data.again.replace("vidrio look", `vidrio why "${address}"`),
  };
}

export async function answer(path: string, body: object): Promise<unknown> {
  const { address, step } = body as { address: string; step: number };
  switch (path) {
    case "machine":
      return data.machine;
    case "translate":
      return { translation: data.run.translation };
    case "run":
      return data.run;
    case "search":
      return data.search;
    case "choose":
      return data.choices[step] ?? null;
    case "why":
      return data.whys[step] ?? null;
    case "tokens":
      return data.tokens;
    case "receipt":
      return receipt(address);
  }
  throw new Error(path);
}

export async function tensors(addresses: string[]): Promise<Map<string, Tensor>> {
  const every = await loaded;
  return new Map(addresses.flatMap((address) => (every.has(address) ? [[address, every.get(address)]] : [])));
}

// For whoever opens the console, and for tests.
Object.assign(alone, { answer, tensors });
