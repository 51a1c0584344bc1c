/** Answers requests from the data embedded in a standalone file. */

import { readAddress, readTensors, type Tensor, valueAt } from "./tensors";
import type { Change, Choice, Machine, Receipt, Run, Search, Tokenising, Why } from "./types";

interface Data {
  machine: Machine;
  run: Run;
  changes: Change[];
  search: Search | null;
  choices: Choice[];
  whys: Why[]; // one per step, for the chosen token against the runner-up
  tokens: Tokenising | null;
  again: string;
  edited: string[];
}

interface File {
  data: Data;
  numbers: () => Promise<Uint8Array>; // the contents of a safetensors file
}

const file = (globalThis as { vidrio?: File }).vidrio as File;
const { data } = file;
const loaded = file
  .numbers()
  .then(({ buffer }) => (buffer.byteLength ? readTensors(buffer as ArrayBuffer) : new Map()));

/** Returns a receipt without its terms, which are not embedded. `why` is the command that prints them. */
async function receipt(address: string): Promise<Receipt> {
  const { name, index } = readAddress(address);
  const [tensor, stage] = [(await loaded).get(name), data.machine.stages.find((stage) => stage.address === name)];
  if (!stage) throw new Error(address);
  const [row, column] = index.length > 1 ? index : [0, index[0]];
  const value = tensor ? valueAt(tensor, row ?? 0, column ?? 0) : Number.NaN;
  const token = (axis: string, n: number) => (axis === "S" ? data.run.source : axis === "T" ? data.run.target : [])[n];
  return {
    ...stage,
    address,
    quantity: name,
    index,
    tokens: [...stage.axes].map((axis, n) => token(axis, index[n] ?? 0)?.token ?? ""),
    formula_here: "",
    working: [],
    value,
    dtype: data.machine.dtype,
    edited: data.edited.includes(name),
    terms: null,
    slips: [],
    made_from: [],
    made_from_count: 0,
    used_by: data.machine.stages.filter(({ inputs }) => inputs.includes(name)).map((stage) => stage.address),
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
  const all = await loaded;
  return new Map(addresses.flatMap((address) => (all.has(address) ? [[address, all.get(address)]] : [])));
}

// For tests and the browser console.
Object.assign(file, { answer, tensors });
