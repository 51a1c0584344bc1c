/**
 * One number of a file, worked out from the other numbers in it, as on paper: which numbers meet is told by the patterns
 * that came with them (src/vidrio/look/patterns.py), term by term, in double precision.
 */

import { cellText } from "./tensors";
import type { Factor, Machine, Receipt, Run, Stage } from "./types";
import { type Node, type Reader, rounded, type Unpacked } from "./unpack";

export interface Patterns {
  kinds: [indices: string, make: Node][];
  of: Record<string, number>;
}

interface Cell {
  name: string;
  place: number[];
  value: number;
}
type Expression =
  | { is: "cell"; cell: Cell }
  | { is: "constant"; value: number; symbol: string }
  | { is: "operation"; sign: string; parts: Expression[] }
  | { is: "sum"; kind: "product" | "plain" | "square" | "exp"; rows: Cell[][]; shift?: Expression };

/** A number that it is made from is not in the file. */
export class NotHere extends Error {
  constructor(readonly quantity: string) {
    super(quantity);
  }
}

const FUNCTIONS: Record<string, (x: number) => number> = {
  exp: Math.exp,
  log: Math.log,
  sqrt: Math.sqrt,
  sin: Math.sin,
  cos: Math.cos,
  abs: Math.abs,
  max0: (x) => (Number.isNaN(x) ? x : Math.max(0, x)),
  round: rounded,
};
const LONG = 6; // terms of a sum that are written one by one

/** How one number is made; null where it comes in from outside. */
export function expressionOf(reader: Reader, stage: Stage, place: number[], patterns: Patterns): Expression | null {
  const kind = patterns.kinds[patterns.of[stage.address] ?? -1];
  if (!kind) return null;
  const [inputs = "", made = ""] = kind[0].split("->");
  const axes = inputs.split(",");
  const here: Record<string, number> = {};
  [...made].forEach((letter, n) => {
    here[letter] = place[n] ?? 0;
  });
  const at = (slot: number, where: Record<string, number>): Cell => {
    const name = stage.inputs[slot] ?? "";
    const inside = [...(axes[slot] ?? "")].map((letter) => where[letter] ?? 0);
    const value = reader.number(name, inside);
    if (value === undefined) throw new NotHere(name);
    return { name, place: inside, value };
  };
  if (axes.some((one) => one.includes("p"))) here.p = reader.number(stage.inputs[1] ?? "", [here.i ?? 0]) ?? 0;
  const row = (slot: number): Cell[] => {
    const axis = [...(axes[slot] ?? "")].findIndex((letter) => !made.includes(letter));
    const letter = axes[slot]?.[axis] ?? "k";
    const length = reader.shape(stage.inputs[slot] ?? "")?.[axis];
    if (length === undefined) throw new NotHere(stage.inputs[slot] ?? "");
    return Array.from({ length }, (_, k) => at(slot, { ...here, [letter]: k }));
  };
  const cell = (found: Cell): Expression => ({ is: "cell", cell: found });
  const best = (slot: number, of: (x: number) => number): Expression =>
    cell(row(slot).reduce((a, b) => (of(b.value) > of(a.value) ? b : a)));
  const build = (node: Node): Expression => {
    const [sign, a, b] = node as [string, never, never];
    switch (sign) {
      case "in":
        return cell(at(a, here));
      case "of":
        return cell(at(a, { ...here, k: here.j ?? 0 }));
      case "num":
        return { is: "constant", value: Number(`${a}`.replace("inf", "Infinity")), symbol: b };
      case "max":
        return best(a, (x) => x);
      case "largest":
        return best(a, Math.abs);
      case "dot": {
        const other = row(b);
        return { is: "sum", kind: "product", rows: row(a).map((one, k) => [one, other[k] as Cell]) };
      }
      case "total":
        return { is: "sum", kind: "plain", rows: row(a).map((one) => [one]) };
      case "squares":
        return { is: "sum", kind: "square", rows: row(a).map((one) => [one]), shift: build(b) };
      case "exps": {
        const shift = b ? { shift: best(a, (x) => x) } : {};
        return { is: "sum", kind: "exp", rows: row(a).map((one) => [one]), ...shift };
      }
      case "seen":
        return (here.j ?? 0) <= (here.i ?? 0) ? build(a) : build(b);
      case "even":
        return (here.j ?? 0) % 2 === 0 ? build(a) : build(b);
      case "above0":
        return evaluated(build(a)) >= 0 ? build(b) : build(node[3] as Node);
      case "place": {
        const column = here.j ?? 0;
        return { is: "constant", value: (a as string) === "row" ? (here.i ?? 0) : column - (column % 2), symbol: "" };
      }
      case "part": {
        let [slot, column] = [0, here.j ?? 0];
        const width = (s: number) => reader.shape(stage.inputs[s] ?? "")?.[1] ?? Infinity;
        while (column >= width(slot)) column -= width(slot++);
        const name = stage.inputs[slot] ?? "";
        const inside = [here.i ?? 0, column];
        return cell({ name, place: inside, value: reader.number(name, inside) ?? Number.NaN });
      }
    }
    return { is: "operation", sign, parts: (node.slice(1) as Node[]).map(build) };
  };
  return build(kind[1]);
}

const term = (e: Extract<Expression, { is: "sum" }>, [a, b]: Cell[]): number => {
  const x = a?.value ?? Number.NaN;
  const away = x - (e.shift ? evaluated(e.shift) : 0);
  return { product: x * (b?.value ?? Number.NaN), plain: x, square: away * away, exp: Math.exp(away) }[e.kind];
};

export function evaluated(e: Expression): number {
  switch (e.is) {
    case "cell":
      return e.cell.value;
    case "constant":
      return e.value;
    case "sum":
      return e.rows.reduce((sum, row) => sum + term(e, row), 0);
  }
  const [a = Number.NaN, ...others] = e.parts.map(evaluated);
  const b = others[0] ?? Number.NaN;
  switch (e.sign) {
    case "+":
      return others.reduce((sum, x) => sum + x, a);
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      return a / b;
    case "^":
      return a ** b;
  }
  return (FUNCTIONS[e.sign] ?? (() => Number.NaN))(a);
}

/** The numbers that it is made from, in the formula's order, each once. */
function cellsOf(e: Expression): Cell[] {
  const every = (e: Expression): Cell[] =>
    e.is === "cell"
      ? [e.cell]
      : e.is === "sum"
        ? [...e.rows.flat(), ...(e.shift ? every(e.shift) : [])]
        : e.is === "operation"
          ? e.parts.flatMap(every)
          : [];
  return [...new Map(every(e).map((cell) => [cellText(cell.name, cell.place), cell])).values()];
}

// --- written down ----------------------------------------------------------------------------------------------------

interface Notation {
  cell: (cell: Cell) => string;
  constant: (value: number, symbol: string) => string;
  call: (name: string, inside: string) => string;
  power: string;
  most: number; // terms written one by one
  sigma?: boolean;
}
const RANK: Record<string, number> = { "+": 1, "-": 1, "*": 2, "/": 2, "^": 3 };

function write(e: Expression, n: Notation): string {
  const put = (text: string) => (text.startsWith("-") ? `(${text})` : text);
  const inside = (part: Expression, above: number, right = false): string => {
    const text = write(part, n);
    const rank = part.is === "operation" ? (RANK[part.sign] ?? 9) : part.is === "sum" ? 1 : 9;
    return rank < above || (right && rank === above) ? `(${text})` : above > 1 ? put(text) : text;
  };
  switch (e.is) {
    case "cell":
      return n.cell(e.cell);
    case "constant":
      return n.constant(e.value, e.symbol);
    case "operation": {
      const [a, b] = e.parts as [Expression, Expression];
      const rank = RANK[e.sign];
      if (!rank) return n.call(e.sign, write(a, n));
      const sign = e.sign === "^" ? n.power : e.sign === "+" || e.sign === "-" ? ` ${e.sign} ` : ` ${e.sign} `;
      if (e.sign === "+") return e.parts.map((part) => inside(part, 1)).join(" + ");
      return `${inside(a, rank)}${sign}${inside(b, rank, true)}`;
    }
  }
  const shift = e.shift ? ` - ${put(write(e.shift, n))}` : "";
  const one = ([a, b]: Cell[]): string => {
    const x = a ? n.cell(a) : "";
    if (e.kind === "product") return `${put(x)}*${put(b ? n.cell(b) : "")}`;
    if (e.kind === "plain") return put(x);
    return e.kind === "square" ? `(${x}${shift})${n.power}2` : n.call("exp", `${x}${shift}`);
  };
  if (n.sigma) {
    const varying = (row: Cell[]): Cell[] =>
      row.map((cell, c) => {
        const other = e.rows[1]?.[c]?.place ?? cell.place;
        return { ...cell, place: cell.place.map((x, axis) => (other[axis] === x ? x : Number.NaN)) };
      });
    return `Σ_k ${one(varying(e.rows[0] ?? []))}`;
  }
  const shown = e.rows.length <= n.most ? e.rows : e.rows.slice(0, LONG);
  return shown.map(one).join(" + ") + (shown.length < e.rows.length ? ` + … (${e.rows.length})` : "");
}

/** A short name in formulas for each quantity: its last part, or more of it where two would be the same. */
function shortNames(names: string[]): Map<string, string> {
  const parts = new Map(names.map((name) => [name, name.split(".").filter((part) => !/^h\d+$/.test(part))]));
  for (let count = 1; count < 8; count++) {
    const short = new Map(names.map((name) => [name, (parts.get(name) ?? []).slice(-count).join(".")]));
    if (new Set(short.values()).size === names.length) return short;
  }
  return new Map(names.map((name) => [name, name]));
}

const asWritten = (x: number): string => (Number.isFinite(x) ? String(x) : x > 0 ? "∞" : x < 0 ? "-∞" : "NaN");
const numbers: Notation = {
  cell: ({ value }) => asWritten(value),
  constant: asWritten,
  call: (name, inside) => (name === "max0" ? `max(0, ${inside})` : `${name}(${inside})`),
  power: "^",
  most: LONG,
};
const COPIES: Record<string, Notation> = {
  python: {
    ...numbers,
    call: (name, inside) =>
      name === "max0"
        ? `max(0.0, ${inside})`
        : ["abs", "round"].includes(name)
          ? `${name}(${inside})`
          : `math.${name}(${inside})`,
    power: "**",
    most: Infinity,
  },
  spreadsheet: {
    ...numbers,
    call: (name, inside) =>
      name === "max0"
        ? `MAX(0,${inside})`
        : name === "round"
          ? `ROUND(${inside},0)`
          : `${name.toUpperCase()}(${inside})`,
    most: Infinity,
  },
};

export const copyOf = (e: Expression, kind: string): string =>
  `${kind === "spreadsheet" ? "=" : ""}${write(e, COPIES[kind] ?? numbers)}`;

// --- the receipt -----------------------------------------------------------------------------------------------------

interface Known {
  unpacked: Unpacked;
  machine: Machine;
  run: Run;
  patterns: Patterns;
  edited: string[]; // quantities into which a what-if put other numbers
}

export function receiptOf(known: Known, quantity: string, place: number[], step: number | null): Receipt {
  const { machine, run, patterns } = known;
  const reader = known.unpacked.reader(step);
  const stage = machine.stages.find(({ address }) => address === quantity);
  const value = reader.number(quantity, place);
  if (!stage || value === undefined) throw new NotHere(quantity);
  const address = (name: string, at: number[]) => cellText(name, at, step);
  let e: Expression | null = null;
  let missing = "";
  try {
    e = expressionOf(reader, stage, place, patterns);
  } catch (error) {
    if (!(error instanceof NotHere)) throw error;
    missing = error.quantity;
  }
  const cells = e ? cellsOf(e) : [];
  const short = shortNames([...new Set(cells.map(({ name }) => name))]);
  const symbols: Notation = {
    ...numbers,
    cell: ({ name, place: at }) => `${short.get(name)}[${at.map((x) => (Number.isNaN(x) ? "k" : x)).join(",")}]`,
    constant: (x, symbol) => symbol || asWritten(x),
    sigma: true,
  };
  const again = e ? evaluated(e) : value;
  const factor = ({ name, place: at, value: x }: Cell): Factor => ({ address: address(name, at), value: x });
  const sum = e ? firstSum(e) : null;
  let soFar = 0;
  return {
    address: address(quantity, place),
    quantity,
    index: place,
    tokens: [...stage.axes].map((axis, n) => tokenAt(run, axis, place[n] ?? 0)),
    kind: stage.kind,
    says: stage.says,
    place: stage.place,
    formula: stage.formula,
    latex: stage.latex,
    formula_here: e ? write(e, symbols) : "",
    working: e && e.is !== "cell" ? [write(e, numbers), asWritten(again)] : [],
    code: stage.code,
    value,
    dtype: machine.dtype,
    computed: value,
    recomputed: again,
    difference: Math.abs(again - value) || 0,
    tolerance: null,
    agrees: true,
    edited: known.edited.includes(quantity) && again !== value,
    facts: [],
    terms: sum && {
      kind: sum.kind,
      rows: sum.rows.map((row) => {
        const product = term(sum, row);
        soFar += product;
        return { factors: row.map(factor), value: product, so_far: soFar };
      }),
      sum: soFar,
    },
    slips: slips(e, value),
    made_from: cells.map(factor),
    made_from_count: cells.length,
    used_by: [...usedBy(known, reader, quantity, place)].map(([name, at]) => cellText(name, at, step)),
    copies: e ? Object.keys(COPIES) : [],
    stored: null,
    missing,
  };
}

const tokenAt = (run: Run, axis: string, n: number): string =>
  (axis === "S" ? run.source[n]?.token : axis === "T" ? run.target[n]?.token : "") ?? "";

function firstSum(e: Expression): Extract<Expression, { is: "sum" }> | null {
  if (e.is === "sum") return e;
  if (e.is !== "operation") return null;
  return e.parts.map(firstSum).find((found) => found) ?? null;
}

function slips(e: Expression | null, value: number): Receipt["slips"] {
  const found: Receipt["slips"] = [];
  if (e?.is === "operation" && e.sign === "/") {
    const [a, b] = e.parts.map(evaluated);
    found.push({ slip: "not divided", value: a ?? 0 }, { slip: "only the divisor", value: b ?? 0 });
  } else if (e?.is === "operation" && (e.sign === "+" || e.sign === "-")) {
    const [a, b] = e.parts.map(evaluated);
    found.push({ slip: "second left out", value: a ?? 0 }, { slip: "first left out", value: b ?? 0 });
  }
  if (value === -Infinity) found.push({ slip: "hidden is not 0", value: 0 });
  else if (value) found.push({ slip: "sign", value: -value });
  return found;
}

/** What is made from a number; ":" stands for every index. */
function* usedBy(
  { machine, patterns }: Known,
  reader: Reader,
  name: string,
  place: number[],
): Generator<[string, (number | string)[]]> {
  for (const stage of machine.stages) {
    const kind = patterns.kinds[patterns.of[stage.address] ?? -1];
    const slot = stage.inputs.indexOf(name);
    if (!kind || slot < 0) continue;
    const [inputs = "", made = ""] = kind[0].split("->");
    const axes = inputs.split(",")[slot] ?? "";
    const bound: Record<string, number> = {};
    [...axes].forEach((letter, n) => {
      bound[letter] = place[n] ?? 0;
    });
    if (kind[1][0] === "part") {
      const width = reader.shape(name)?.[1] ?? 0;
      yield [stage.address, [place[0] ?? 0, slot * width + (place[1] ?? 0)]];
    } else if (bound.p !== undefined) {
      const ids = reader.data(stage.inputs[1] ?? "") ?? [];
      for (let i = 0; i < ids.length; i++)
        if (ids[i] === bound.p && (bound.i ?? i) === i)
          yield [stage.address, [...made].map((letter) => (letter === "i" ? i : (bound[letter] ?? ":")))];
    } else if (kind[1][0] !== "seen" || (bound.j ?? 0) <= (bound.i ?? 0))
      yield [stage.address, [...made].map((letter) => bound[letter] ?? ":")];
  }
}
