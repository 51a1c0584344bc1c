/** Chooses the decoding step to display first. */

import { asNumber, isSpecial, tokenText } from "./format";
import type { Run } from "./types";

const isWord = (token: string) => !isSpecial(token) && /\p{L}{2,}/u.test(tokenText(token));

/** Returns the steps that chose a word rather than punctuation, a capitalisation marker or the end token. */
const wordSteps = (run: Run, end: string): number[] =>
  run.steps.flatMap(({ token }, step) => (isWord(token) && token !== end ? [step] : []));

export const firstWord = (run: Run, end = ""): number => wordSteps(run, end)[0] ?? 0;

/** Returns the step that chose the least probable word. */
export function leastCertain(run: Run, end = ""): number {
  const probability = (step: number) => asNumber(run.steps[step]?.best.find(({ taken }) => taken)?.p ?? 1);
  return wordSteps(run, end).reduce(
    (least, step) => (probability(step) < probability(least) ? step : least),
    firstWord(run, end),
  );
}
