/** The highlighted tokens and blocks, and the displayed attention. */

import { page } from "./state.svelte";
import { columnsOf, rowsOf, type Tensor, valueAt } from "./tensors";

export interface Pointed {
  axis: "S" | "T";
  row: number;
}

class Focus {
  pointed: Pointed | null = $state.raw(null); // the row under the pointer
  attention = $state(""); // the attention displayed by the story, such as enc.0.self; empty for the user's choice
  details = $state(false); // whether an open layer includes the steps of layer norm and int8 arithmetic
  lit: readonly string[] | null = $state.raw(null); // the highlighted blocks; null if none, so that nothing is dimmed

  /** The names of all attention sub-layers, such as enc.0.self. */
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
  /** The source token under the pointer, else the selected token, else the token that the target attends to most. */
  readonly source: number = $derived.by(() => {
    if (this.pointed?.axis === "S") return this.pointed.row;
    if (page.view.row >= 0) return Math.min(page.view.row, (page.run?.source.length ?? 1) - 1);
    return this.mostAttended(this.target);
  });

  /**
   * Returns the source token that a target token attends to most, in the displayed cross-attention or, if none is
   * displayed, in the last one.
   */
  mostAttended(target: number): number {
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

/** Returns the column of a row's largest weight, or -1 if the row does not exist. */
export function strongest(weights: Tensor | undefined, row: number): number {
  if (!weights || row < 0 || row >= rowsOf(weights)) return -1;
  let best = 0;
  for (let column = 1; column < columnsOf(weights); column++)
    if (valueAt(weights, row, column) > valueAt(weights, row, best)) best = column;
  return best;
}

export const focus = new Focus();
