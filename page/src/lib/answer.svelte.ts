/** Repeats a request whenever its reactive dependencies change, and keeps the latest response. */

import { Refusal } from "./api";

type Request<T> = (signal: AbortSignal) => Promise<T>;

export class Answer<T> {
  value: T | null = $state.raw(null);
  refusal: Refusal | null = $state.raw(null);

  /** If `request` returns undefined, nothing is sent. `delay` is the debounce delay in milliseconds. */
  constructor(request: () => Request<T> | undefined, delay = 80) {
    $effect(() => {
      const send = request();
      if (!send) {
        [this.value, this.refusal] = [null, null];
        return;
      }
      const abort = new AbortController();
      const timer = setTimeout(() => {
        send(abort.signal).then(
          (answer) => {
            if (!abort.signal.aborted) [this.value, this.refusal] = [answer, null];
          },
          (error: unknown) => {
            if (!abort.signal.aborted) [this.value, this.refusal] = [null, error instanceof Refusal ? error : null];
          },
        );
      }, delay);
      return () => {
        clearTimeout(timer);
        abort.abort();
      };
    });
  }
}
