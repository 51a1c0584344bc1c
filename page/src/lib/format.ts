import type { Num } from "./types";

const LARGEST_ERROR = 0.05; // relative to the value, so that 0 is not accepted as an answer for 0.0011
const WORDS: Record<string, number> = { NaN: Number.NaN, inf: Infinity, "-inf": -Infinity };

export const asNumber = (value: Num): number => (typeof value === "number" ? value : (WORDS[value] ?? Number.NaN));

/** Formats a number with a Unicode minus sign. Integers have no decimals; very small and very large numbers have
 * an exponent. */
export function written(value: Num, decimals = 4): string {
  const x = asNumber(value);
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (Number.isInteger(x) && Math.abs(x) < 1e6) return String(x).replace("-", "−");
  const small = Math.abs(x) < 0.5 * 10 ** -decimals || Math.abs(x) >= 1e6;
  // Drop decimals to make room for the exponent.
  return (small ? x.toExponential(Math.max(0, Math.min(2, decimals - 2))) : x.toFixed(decimals)).replaceAll("-", "−");
}

/** Formats a number without an exponent. */
export const decimals = (value: Num, count = 2): string => {
  const x = asNumber(value);
  return Number.isFinite(x)
    ? x
        .toFixed(count)
        .replace(/^-(?=0\.?0*$)/, "")
        .replace("-", "−")
    : written(value);
};

/** Formats a number at full precision. */
export function inFull(value: Num): string {
  const x = asNumber(value);
  if (Number.isNaN(x)) return "NaN";
  return Number.isFinite(x) ? String(x).replaceAll("-", "−") : x > 0 ? "∞" : "−∞";
}

/** Whether an answer is correct to the number of decimal places given. */
export function isRight(answer: string, value: Num): boolean {
  const typed = answer.trim().replace(",", ".").replaceAll("−", "-");
  const x = asNumber(value);
  if (/^nan$/i.test(typed)) return Number.isNaN(x);
  if (/^[+-]?(∞|inf(inity)?)$/i.test(typed)) return x === (typed.startsWith("-") ? -Infinity : Infinity);
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

/** Converts a fraction to a CSS width; NaN and infinity become 0%. */
export const width = (p: Num): string => {
  const x = asNumber(p);
  return `${Number.isFinite(x) ? 100 * Math.min(1, Math.max(0, x)) : 0}%`;
};

/** Abbreviates a number: 1.2M, 25k, 3.5 or 0.0012. */
export function short(value: number): string {
  for (const [size, letter, unit] of [
    [1e9, "G", 1e9],
    [1e6, "M", 1e6],
    [1e4, "k", 1e3],
  ] as const)
    if (Math.abs(value) >= size) return `${Number((value / unit).toPrecision(3))}${letter}`;
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
}

/** Returns a token without ▁, which marks the start of a word. */
export const tokenText = (token: string): string => token.replaceAll("▁", "");
export const beginsWord = (token: string): boolean => token.startsWith("▁");
/** Whether a token is a special token, such as <s>. Byte tokens, such as <0x0A>, are not special. */
export const isSpecial = (token: string): boolean => /^<(?!0x).+>$/.test(token);

const MARKED = /⇧( ?)([^⇧⇪])|⇪( ?)((?:\p{L}|['’])+)|[⇧⇪]/gsu;
const restored = (_: string, before = "", letter = "", space = "", word = "") =>
  before + letter.toUpperCase() + space + word.toUpperCase();
/** Joins tokens into text, restoring spaces and capitals as text/tokens/case.py does. */
export const textOf = (tokens: readonly string[]): string =>
  tokens
    .map((token) => (isSpecial(token) ? `${token} ` : token.replaceAll("▁", " ")))
    .join("")
    .replace(MARKED, restored)
    .replaceAll("  ", " ")
    .trim();
