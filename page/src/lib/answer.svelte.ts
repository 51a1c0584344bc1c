/** The answer to a question that follows the page: asked again when the question changes, and the old one is aborted. */

import { Refused } from "./api";

type Question<T> = (signal: AbortSignal) => Promise<T>;

export class Answer<T> {
  value: T | null = $state.raw(null);
  refused: Refused | null = $state.raw(null); // why there is no answer

  /** `question` returns nothing while nothing is asked; `rest` is how long it must stay the same, in milliseconds. */
  constructor(question: () => Question<T> | undefined, rest = 80) {
    $effect(() => {
      const ask = question();
      if (!ask) {
        [this.value, this.refused] = [null, null];
        return;
      }
      const stop = new AbortController();
      const timer = setTimeout(() => {
        ask(stop.signal).then(
          (answer) => {
            if (!stop.signal.aborted) [this.value, this.refused] = [answer, null];
          },
          (error: unknown) => {
            if (!stop.signal.aborted) [this.value, this.refused] = [null, error instanceof Refused ? error : null];
          },
        );
      }, rest);
      return () => {
        clearTimeout(timer);
        stop.abort();
      };
    });
  }
}
