/** Where the parts of a word's explanation are found in the model. */

import { asNumber } from "./format";
import type { Messages } from "./messages";
import type { Origin, Why, WhyPart } from "./types";

/** The parts that an origin adds up, the largest first. */
export const partsOf = (why: Why, { side, row, name }: Origin): WhyPart[] =>
  why.parts
    .filter((part) => part.side === side && part.row === row && part.origin === name)
    .sort((a, b) => Math.abs(asNumber(b.value)) - Math.abs(asNumber(a.value)));

/** The quantity that a part is computed from, and for a head the weight of the row that it reads. */
export function placeOf(name: string, step: number): { quantity: string; weight: string } {
  const head = /^(.+)\.(h\d+)(?:\[(\d+)\])?$/.exec(name);
  if (head) {
    const quantity = `${head[1]}.weights.${head[2]}`;
    return { quantity, weight: head[1]?.startsWith("dec.") && head[3] ? `${quantity}[${step},${head[3]}]` : "" };
  }
  const plain = name.replace(/\[\d+\]$/, "");
  const quantity = [
    [/\.embedding$/, ".scaled"],
    [/\.norm\.bias$/, ".norm.out"],
    [/\.bO$/, ".out"],
    [/\.ffn$/, ".ffn.out"],
    [/\.ssru$/, ".ssru.cell"],
    [/^out\.b$/, "out.logits"],
  ] as const;
  const found = quantity.find(([end]) => end.test(plain));
  return {
    quantity: found ? plain.replace(found[0], found[1]) : plain.startsWith("rounding") ? "" : plain,
    weight: "",
  };
}

/** “Layer 1: Cross-attention, head 0” for dec.1.cross.h0[5]; the name itself for what is not in a layer. */
export function titleOf(name: string, t: Messages): string {
  const found = /^(enc|dec)\.(\d+)\.(self|cross|ffn|ssru)(?:\.h(\d+))?(\.\w+)*(?:\[\d+\])?$/.exec(name);
  if (!found) return name;
  const [, side, layer, kind = "", head, rest = ""] = found;
  const part = t.parts[side === "dec" && kind === "self" ? "masked" : kind] ?? kind;
  return `${t.layer} ${layer}: ${part}${head === undefined ? "" : `, ${t.head} ${head}`}${rest}`;
}
