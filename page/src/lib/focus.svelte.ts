/** The rows that stand out through the whole machine, the attention that is drawn between the towers, and what the story lights. */

import { page } from "./state.svelte";
import { columnsOf, rowsOf, type Tensor, valueAt } from "./tensors";

export interface Pointed {
  axis: "S" | "T";
  row: number;
}

class Focus {
  pointed: Pointed | null = $state.raw(null); // under the pointer, for the moment
  attention = $state(""); // whose weights the story draws between the towers: enc.0.self; empty: what the reader chose
  every = $state(false); // in a layer: the details, too
  lit: readonly string[] | null = $state.raw(null); // blocks that the story is about; null: all

  /** Attention of every layer, as addresses without `.weights`. */
  readonly attentions: string[] = $derived(
    [...page.stages.keys()].flatMap((address) => /^(.+)\.weights\.h0$/.exec(address)?.[1] ?? []),
  );
  #crosses: string[] = $derived(this.attentions.filter((name) => name.endsWith(".cross")));
  readonly drawn: string = $derived(
    [this.attention, page.view.attention].find((name) => this.attentions.includes(name)) ??
      this.#crosses.at(-1) ??
      this.attentions.at(-1) ??
      "",
  );
  readonly target: number = $derived(this.pointed?.axis === "T" ? this.pointed.row : page.step);
  /** The row of the source: pointed at, chosen, or what the target's row reads most from. */
  readonly source: number = $derived.by(() => {
    if (this.pointed?.axis === "S") return this.pointed.row;
    if (page.view.row >= 0) return Math.min(page.view.row, (page.run?.source.length ?? 1) - 1);
    return this.readMostBy(this.target);
  });

  /** The source row from which a row of the target takes the largest share: of the attention drawn, or of the last layer's. */
  readMostBy(target: number): number {
    const cross = this.#crosses.includes(this.drawn) ? this.drawn : this.#crosses.at(-1);
    return cross ? strongest(page.tensor(`${cross}.weights`), target) : -1;
  }

  rowOf(axis: string | undefined): number {
    return axis === "S" ? this.source : axis === "T" ? this.target : -1;
  }

  point(axis: string | undefined, row: number): void {
    if ((axis === "S" || axis === "T") && (this.pointed?.axis !== axis || this.pointed.row !== row))
      this.pointed = { axis, row };
  }
}

/** The column from which a row takes the largest share. */
export function strongest(weights: Tensor | undefined, row: number): number {
  if (!weights || row < 0 || row >= rowsOf(weights)) return -1;
  let most = 0;
  for (let column = 1; column < columnsOf(weights); column++)
    if (valueAt(weights, row, column) > valueAt(weights, row, most)) most = column;
  return most;
}

export const focus = new Focus();
