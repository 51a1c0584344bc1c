/**
 * The numbers of a page that is one file. A quantity is stored, or is made by a rule that gives the very same bits: who
 * wrote the file has tried it (src/vidrio/draw/packed.py). So nothing here is computed that was not there before.
 */

import type { Tensor } from "./tensors";

export type Node = [string, ...unknown[]];

interface Rule {
  of: string[];
  by: string; // ik,kj->ij
  make: Node;
  in: "f4" | "f8";
}

export interface Entry {
  shape: number[];
  type: string; // NumPy's name for the kind of number
  rows?: number[]; // of a large table: the rows that are here
  part?: number;
  kind?: Kind;
  at?: number;
  rule?: Rule;
}

export interface Packed {
  quantities: Record<string, Entry>;
  parts: Record<Kind, number>[];
  left_out: string[];
}

const KINDS = { i1: Int8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };
type Kind = keyof typeof KINDS;
type Numbers = InstanceType<(typeof KINDS)[Kind]>;

export interface Reader {
  number: (name: string, place: number[]) => number | undefined;
  shape: (name: string) => number[] | undefined;
  data: (name: string) => Tensor["data"] | undefined;
}

export const size = (shape: number[]): number => shape.reduce((product, length) => product * length, 1);

/** To the nearest whole number, halves to the even one. */
export function rounded(x: number): number {
  const up = Math.round(x);
  return Math.abs(x % 1) === 0.5 && up % 2 ? up - 1 : up;
}

/** The numbers of one part, kind by kind; of each kind all first bytes stand before all second ones. */
function unpart(bytes: Uint8Array, counts: Record<Kind, number>): Record<Kind, Numbers> {
  let from = 0;
  const found: Partial<Record<Kind, Numbers>> = {};
  for (const kind of Object.keys(KINDS) as Kind[]) {
    const count = counts[kind];
    const width = KINDS[kind].BYTES_PER_ELEMENT;
    const mixed = new Uint8Array(count * width);
    for (let plane = 0; plane < width; plane++)
      for (let n = 0; n < count; n++) mixed[n * width + plane] = bytes[from + plane * count + n] as number;
    found[kind] = new KINDS[kind](mixed.buffer);
    from += count * width;
  }
  return found as Record<Kind, Numbers>;
}

export class Unpacked {
  #parts: Record<Kind, Numbers>[] = [];
  #made = new Map<string, Tensor>();

  constructor(readonly packed: Packed) {}

  async load(part: (n: number) => Promise<Uint8Array>): Promise<void> {
    this.#parts = await Promise.all(this.packed.parts.map(async (counts, n) => unpart(await part(n), counts)));
  }

  /** A whole quantity; none where only some rows of it are here, or nothing. */
  tensor(name: string): Tensor | undefined {
    const entry = this.packed.quantities[name];
    return entry && !entry.rows ? this.#tensor(name, entry) : undefined;
  }

  /** The numbers as they were at a step that was computed by itself. */
  reader(step: number | null): Reader {
    const then = (name: string) => (`${name}@${step}` in this.packed.quantities ? `${name}@${step}` : name);
    return {
      number: (name, place) => this.number(then(name), place),
      shape: (name) => this.packed.quantities[then(name)]?.shape,
      data: (name) => this.tensor(then(name))?.data,
    };
  }

  /** One number; nothing where it is not in the file. */
  number(name: string, place: number[]): number | undefined {
    const entry = this.packed.quantities[name];
    if (!entry) return undefined;
    const tensor = this.#tensor(name, entry);
    const [row = 0, column = 0] = place;
    const here = entry.rows ? entry.rows.indexOf(row) : row;
    return here < 0 ? undefined : tensor.data[here * (place.length > 1 ? (entry.shape[1] ?? 1) : 1) + column];
  }

  #tensor(name: string, entry: Entry): Tensor {
    const known = this.#made.get(name);
    if (known) return known;
    const shape = entry.rows ? [entry.rows.length, ...entry.shape.slice(1)] : entry.shape;
    const count = size(shape);
    const made = new (entry.type.startsWith("f") ? (entry.type === "f8" ? Float64Array : Float32Array) : Int32Array)(
      count,
    );
    if (entry.rule) this.#fill(made, shape, entry.rule);
    else {
      const stored = this.#parts[entry.part ?? 0]?.[entry.kind ?? "f4"];
      if (stored) made.set(stored.subarray(entry.at, (entry.at ?? 0) + count) as never);
    }
    const tensor = { shape, data: made };
    this.#made.set(name, tensor);
    return tensor;
  }

  #fill(made: Tensor["data"], shape: number[], rule: Rule): void {
    const [inputs = "", letters = ""] = rule.by.split("->");
    const axes = inputs.split(",");
    const round = rule.in === "f4" ? Math.fround : (x: number) => x;
    const columns = letters.length > 1 ? (shape[1] ?? 1) : 1;
    const at = { i: 0, j: 0, k: 0, p: 0 };
    const slots = rule.of.map((name, slot) => {
      const entry = this.packed.quantities[name] as Entry;
      const width = entry.shape.length > 1 ? (entry.shape[1] ?? 1) : 1;
      const steps = { i: 0, j: 0, k: 0, p: 0 };
      const own = axes[slot] ?? "";
      [...own].forEach((letter, axis) => {
        steps[letter as keyof typeof steps] += own.length > 1 && axis === 0 ? width : 1;
      });
      const summed = [...own].findIndex((letter) => !letters.includes(letter) && letter !== "p");
      return { data: this.#tensor(name, entry).data, steps, width, rows: entry.rows, length: entry.shape[summed] ?? 0 };
    });
    const read = (slot: number): (() => number) => {
      const { data, steps, rows: some } = slots[slot] as (typeof slots)[number];
      // Of a table: the row that an id names, else the same row of what is made here.
      if (some && steps.p) return () => data[some.indexOf(at.p) * steps.p + at.j * steps.j] ?? Number.NaN;
      return () => data[at.i * steps.i + at.j * steps.j + at.k * steps.k + at.p * steps.p] ?? Number.NaN;
    };
    const compile = (node: Node): (() => number) => {
      const [sign, a, b] = node as [string, never, never];
      if (sign === "in") return read(a);
      if (sign === "num") {
        const constant = round(Number(`${a}`.replace("inf", "Infinity")));
        return () => constant;
      }
      if (sign === "dot") {
        const [x, y, { length }] = [read(a), read(b), slots[a] as (typeof slots)[number]];
        return () => {
          let total = 0;
          for (at.k = 0; at.k < length; at.k++) total += x() * y();
          at.k = 0;
          return round(total);
        };
      }
      if (sign === "part")
        return () => {
          let [slot, column] = [0, at.j];
          while (column >= (slots[slot]?.width ?? Infinity)) column -= slots[slot++]?.width ?? 0;
          return slots[slot]?.data[at.i * (slots[slot]?.width ?? 1) + column] ?? Number.NaN;
        };
      const [x = () => Number.NaN, ...others] = (node.slice(1) as Node[]).map(compile);
      const y = others[0] ?? x;
      switch (sign) {
        case "max0":
          return () => {
            const value = x();
            return value > 0 || Number.isNaN(value) ? value : 0;
          };
        case "f4":
          return () => Math.fround(x());
        case "seen":
          return () => (at.j <= at.i ? x() : y());
        case "sqrt":
          return () => round(Math.sqrt(x()));
        case "round":
          return () => rounded(x());
        case "+":
          return () => others.reduce((sum, other) => round(sum + other()), x());
        case "-":
          return () => round(x() - y());
        case "*":
          return () => round(x() * y());
        case "/":
          return () => round(x() / y());
      }
      return () => Number.NaN;
    };
    const value = compile(rule.make);
    const picks = axes.some((one) => one.includes("p")) ? slots[1]?.data : undefined;
    for (let n = 0; n < made.length; n++) {
      const row = Math.floor(n / columns);
      at.i = row;
      at.j = letters.length > 1 ? n % columns : row;
      if (picks) at.p = picks[at.i] ?? 0;
      made[n] = value();
    }
  }
}
