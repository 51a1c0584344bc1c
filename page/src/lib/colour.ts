/** Maps numbers to colours. Positive and negative numbers also differ in lightness, to help colour-blind users. */

export type Scale = "signed" | "share";
export type Theme = "light" | "dark";
type Rgb = readonly [number, number, number];

const PAPER: Record<Theme, Rgb> = { light: [247, 249, 248], dark: [20, 30, 28] };
const BELOW: Record<Theme, Rgb> = { light: [20, 82, 158], dark: [104, 176, 255] };
const ABOVE: Record<Theme, Rgb> = { light: [196, 88, 6], dark: [255, 164, 72] };
const SHARE: Record<Theme, Rgb> = { light: [88, 40, 168], dark: [190, 150, 255] };
const HIDDEN: Record<Theme, Rgb> = { light: [214, 221, 219], dark: [44, 58, 54] };
const NAN: Rgb = [214, 0, 110];

const mix = (a: Rgb, b: Rgb, t: number): Rgb => [
  a[0] + (b[0] - a[0]) * t,
  a[1] + (b[1] - a[1]) * t,
  a[2] + (b[2] - a[2]) * t,
];

/** Returns the colour of a number, saturating at ±`largest`. Exponents below 1 keep small values visible. */
export function colourOf(value: number, largest: number, scale: Scale, theme: Theme): Rgb {
  if (Number.isNaN(value)) return NAN;
  if (value === -Infinity) return HIDDEN[theme];
  const share = largest > 0 ? Math.min(1, Math.abs(value) / largest) : 0;
  if (scale === "share") return mix(PAPER[theme], SHARE[theme], share ** 0.8);
  return mix(PAPER[theme], value < 0 ? BELOW[theme] : ABOVE[theme], share ** 0.7);
}

export const css = ([r, g, b]: Rgb): string => `rgb(${Math.round(r)} ${Math.round(g)} ${Math.round(b)})`;

/** Returns black or white, whichever contrasts more with the given colour (WCAG 2 relative luminance). */
export function inkOn([r, g, b]: Rgb): string {
  const linear = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  const luminance = 0.2126 * (linear[0] ?? 0) + 0.7152 * (linear[1] ?? 0) + 0.0722 * (linear[2] ?? 0);
  return luminance > 0.179 ? "#000000" : "#ffffff";
}

/** Returns CSS that uses a number's colour as the background and sets a legible text colour. */
export function shade(value: number, largest: number, scale: Scale, theme: Theme): string {
  const colour = colourOf(value, largest, scale, theme);
  return `background-color: ${css(colour)}; color: ${inkOn(colour)}`;
}

const SHADES = 1024; // shades per sign
const tables = new Map<string, Uint32Array>();

/** Returns the pixels of a colour scale: shades from −1 to 1, then one pixel for masked values (−∞) and one for NaN. */
function pixelsOf(scale: Scale, theme: Theme): Uint32Array {
  const known = tables.get(scale + theme);
  if (known) return known;
  const numbers = Array.from({ length: 2 * SHADES + 1 }, (_, i) => (i - SHADES) / SHADES);
  const colours = [...numbers, -Infinity, NaN].flatMap((x) => [...colourOf(x, 1, scale, theme), 255]);
  const table = new Uint32Array(new Uint8ClampedArray(colours).buffer);
  tables.set(scale + theme, table);
  return table;
}

/**
 * Draws a matrix with cells one pixel wide and `height` pixels high. If `height` is above 4, the last pixel is left
 * empty to separate the rows. A key press can redraw 100,000 numbers, so the loop must not allocate memory.
 */
export function paint(
  canvas: HTMLCanvasElement,
  rows: number,
  columns: number,
  numberAt: (row: number, column: number) => number,
  largest: number,
  scale: Scale,
  theme: Theme,
  height = 1,
): void {
  canvas.width = columns;
  canvas.height = rows * height;
  const context = canvas.getContext("2d");
  if (!context || !rows || !columns) return;
  const image = context.createImageData(columns, rows * height);
  const [pixels, table] = [new Uint32Array(image.data.buffer), pixelsOf(scale, theme)];
  const [shade, drawn] = [SHADES / (largest || 1), height > 4 ? height - 1 : height];
  for (let row = 0; row < rows; row++) {
    const first = row * height * columns;
    for (let column = 0; column < columns; column++) {
      const value = numberAt(row, column);
      let at = (Math.max(0, Math.min(2 * SHADES, SHADES + value * shade)) + 0.5) | 0;
      if (value === -Infinity) at = 2 * SHADES + 1;
      else if (Number.isNaN(value)) at = 2 * SHADES + 2;
      pixels[first + column] = table[at] ?? 0;
    }
    for (let y = 1; y < drawn; y++) pixels.copyWithin(first + y * columns, first, first + columns);
  }
  context.putImageData(image, 0, 0);
}

const SAMPLE = 1024;
const percentiles = new WeakMap<ArrayLike<number>, number>();

/** Estimates the 98th percentile of absolute values. Scaling to the maximum would let outliers wash out the rest. */
export function mostlyBelow(data: ArrayLike<number>): number {
  const known = percentiles.get(data);
  if (known !== undefined) return known;
  const every = Math.floor(data.length / SAMPLE) | 1; // odd, so that the sample covers every column of a matrix 2ⁿ wide
  const sizes = new Float64Array(Math.ceil(data.length / every));
  let count = 0;
  for (let i = 0; i < data.length; i += every) {
    const size = Math.abs(data[i] ?? NaN);
    if (Number.isFinite(size)) sizes[count++] = size;
  }
  const size = sizes.subarray(0, count).sort()[Math.floor(0.98 * (count - 1))] ?? 0;
  percentiles.set(data, size);
  return size;
}

/** Returns the largest absolute value, ignoring infinities and NaN. */
export function largestOf(data: ArrayLike<number>): number {
  let largest = 0;
  for (let i = 0; i < data.length; i++) {
    const size = Math.abs(data[i] ?? 0);
    if (size > largest && size !== Infinity) largest = size;
  }
  return largest;
}
