import { paint, type Theme } from "./colour";
import { columnsOf, rowsOf, type Tensor, valueAt } from "./tensors";

/** A Svelte action that draws a matrix of attention weights, one pixel per weight. */
export function thumbnail(canvas: HTMLCanvasElement, parameters: { tensor: Tensor | undefined; theme: Theme }) {
  const update = ({ tensor, theme }: typeof parameters) => {
    if (!tensor) return;
    paint(canvas, rowsOf(tensor), columnsOf(tensor), (row, column) => valueAt(tensor, row, column), 1, "share", theme);
  };
  update(parameters);
  return { update };
}
