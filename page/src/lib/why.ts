/** The parts of an explanation, and the tensors that they are computed from. */

import { asNumber, decimals } from "./format";
import { fill, type Messages } from "./messages";
import type { Origin, Removal, Why, WhyPart } from "./types";

/** Returns the parts with the given origin, largest first. */
export const partsOf = (why: Why, { side, row, name }: Origin): WhyPart[] =>
  why.parts
    .filter((part) => part.side === side && part.row === row && part.origin === name)
    .sort((a, b) => Math.abs(asNumber(b.value)) - Math.abs(asNumber(a.value)));

/** Returns the tensor that a part is computed from and, for a decoder head, the address of the attention weight. */
export function quantityOf(name: string, step: number): { quantity: string; weight: string } {
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

/** Returns the drop in a token's log-probability when a word or head is removed. */
export const lossOf = ({ losses }: Removal, step: number): number => asNumber(losses[step] ?? Number.NaN);

export const lossInWords = (loss: number, name: string, t: Messages): string =>
  fill(loss < 0 ? t.whyGains : t.whyLoses, { name, loss: decimals(Math.abs(loss)) });

/** Returns "Layer 1: Cross-attention, head 0" for dec.1.cross.h0[5], and names outside the layers unchanged. */
export function titleOf(name: string, t: Messages): string {
  const found = /^(enc|dec)\.(\d+)\.(self|cross|ffn|ssru)(?:\.h(\d+))?(\.\w+)*(?:\[\d+\])?$/.exec(name);
  if (!found) return name;
  const [, side, layer, kind = "", head, rest = ""] = found;
  const part = t.parts[side === "dec" && kind === "self" ? "masked" : kind] ?? kind;
  return `${t.layer} ${layer}: ${part}${head === undefined ? "" : `, ${t.head} ${head}`}${rest}`;
}
