/** Runs tasks when the browser is idle. Decorations, such as formulas, run after all other tasks. */

const DRAWING = 5; // milliseconds of each idle period reserved for rendering
const TIMEOUT = 30; // the maximum wait for an idle period, in milliseconds
const BATCH = 14; // milliseconds to work after a timeout

const urgent: (() => void)[] = [];
const decorations: (() => void)[] = [];
let scheduled = false;

function schedule() {
  if (scheduled || !(urgent.length || decorations.length)) return;
  scheduled = true;
  if ("requestIdleCallback" in globalThis)
    requestIdleCallback((deadline) => work(deadline.didTimeout ? BATCH : deadline.timeRemaining() - DRAWING), {
      timeout: TIMEOUT,
    });
  else setTimeout(() => work(DRAWING), 16);
}

function work(milliseconds: number) {
  scheduled = false;
  const end = performance.now() + milliseconds;
  do (urgent.shift() ?? decorations.shift())?.();
  while ((urgent.length || decorations.length) && performance.now() < end);
  schedule();
}

export function whenIdle(task: () => void, decorates = false): void {
  (decorates ? decorations : urgent).push(task);
  schedule();
}
