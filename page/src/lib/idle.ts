/** Work that can wait until the browser has nothing more urgent to draw; what has a place of its own before what adorns it. */

const DRAWING = 5; // milliseconds of a frame left for drawing what the work adds
const SLOW = 30; // milliseconds after which it waits no longer: the machine is busy with other things,
const THEN = 14; // and so much is done at once

const places: (() => void)[] = [];
const adornments: (() => void)[] = [];
let asked = false;

function ask() {
  if (asked || !(places.length || adornments.length)) return;
  asked = true;
  if ("requestIdleCallback" in globalThis)
    requestIdleCallback((left) => work(left.didTimeout ? THEN : left.timeRemaining() - DRAWING), { timeout: SLOW });
  else setTimeout(() => work(DRAWING), 16);
}

function work(milliseconds: number) {
  asked = false;
  const end = performance.now() + milliseconds;
  do (places.shift() ?? adornments.shift())?.();
  while ((places.length || adornments.length) && performance.now() < end);
  ask();
}

export function later(piece: () => void, adorns = false): void {
  (adorns ? adornments : places).push(piece);
  ask();
}
