import type { Num } from "./types";

const LARGEST_ERROR = 0.05; // relative, of an answer on paper: 0 is no answer to 0.0011
const WORDS: Record<string, number> = { NaN: Number.NaN, inf: Infinity, "-inf": -Infinity };

export const asNumber = (value: Num): number => (typeof value === "number" ? value : (WORDS[value] ?? Number.NaN));

/** With so many decimals; whole numbers without, tiny ones in powers of ten, and a real minus sign. */
export function written(value: Num, decimals = 4): string {
  const x = asNumber(value);
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (Number.isInteger(x) && Math.abs(x) < 1e6) return String(x).replace("-", "−");
  const small = Math.abs(x) < 0.5 * 10 ** -decimals || Math.abs(x) >= 1e6;
  // A narrow column has room for a power of ten, if few digits stand before it.
  return (small ? x.toExponential(Math.max(0, Math.min(2, decimals - 2))) : x.toFixed(decimals)).replaceAll("-", "−");
}

/** With so many decimals, however small the number is. */
export const decimals = (value: Num, count = 2): string => {
  const x = asNumber(value);
  return Number.isFinite(x)
    ? x
        .toFixed(count)
        .replace(/^-(?=0\.?0*$)/, "")
        .replace("-", "−")
    : written(value);
};

/** As Python writes it: every digit that the number has. */
export function inFull(value: Num): string {
  const x = asNumber(value);
  if (Number.isNaN(x)) return "NaN";
  return Number.isFinite(x) ? String(x).replaceAll("-", "−") : x > 0 ? "∞" : "−∞";
}

/** Whether an answer on paper is right, to the decimals that it has. */
export function isRight(answer: string, value: Num): boolean {
  const typed = answer.trim().replace(",", ".").replaceAll("−", "-");
  const x = asNumber(value);
  if (/^-(∞|inf(inity)?)$/i.test(typed)) return x === -Infinity;
  if (typed === "" || !Number.isFinite(Number(typed))) return false;
  const decimals = /[.](\d*)$/.exec(typed)?.[1]?.length ?? 0;
  const error = Math.abs(Number(typed) - x);
  return error <= 0.5001 * 10 ** -decimals && error <= LARGEST_ERROR * Math.abs(x);
}

export const percent = (p: Num): string => {
  const x = 100 * asNumber(p);
  if (!Number.isFinite(x)) return written(p);
  return x > 0 && x < 0.1 ? "< 0.1 %" : `${x.toFixed(1)} %`;
};

/** A share as a CSS length; NaN draws nothing. */
export const width = (p: Num): string => {
  const x = asNumber(p);
  return `${Number.isFinite(x) ? 100 * Math.min(1, Math.max(0, x)) : 0}%`;
};

/** A number in few characters: 1.2M, 25k, 3.5, 0.0012. */
export function short(value: number): string {
  for (const [size, letter, unit] of [
    [1e9, "G", 1e9],
    [1e6, "M", 1e6],
    [1e4, "k", 1e3],
  ] as const)
    if (Math.abs(value) >= size) return `${Number((value / unit).toPrecision(3))}${letter}`;
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
}

/** How a token is shown: the mark that begins a word becomes a space that can be seen. */
export const tokenText = (token: string): string => token.replaceAll("▁", "");
export const beginsWord = (token: string): boolean => token.startsWith("▁");
/** A token in words: neither empty nor a sign for the start or the end. */
export const shown = (token: string): string => tokenText(token) || "␣";
/** Not a byte, which is written <0x…> too. */
export const isSpecial = (token: string): boolean => /^<(?!0x).+>$/.test(token);

const MARKED = /⇧( ?)([^⇧⇪])|⇪( ?)((?:\p{L}|['’])+)|[⇧⇪]/gsu;
const restored = (_: string, before = "", letter = "", space = "", word = "") =>
  before + letter.toUpperCase() + space + word.toUpperCase();
/** What tokens say as text: words with their spaces and capitals (text/tokens/case.py tells what ⇧ and ⇪ stand for). */
export const textOf = (tokens: readonly string[]): string =>
  tokens
    .map((token) => (isSpecial(token) ? `${token} ` : token.replaceAll("▁", " ")))
    .join("")
    .replace(MARKED, restored)
    .replaceAll("  ", " ")
    .trim();
