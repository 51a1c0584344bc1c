import { focus } from "./focus.svelte";
import { blockOf, headOf, isDetail } from "./plan";
import { page } from "./state.svelte";

/** A layer's quantities come into the document one a frame; what leads to one waits for it. */
function whenThere(id: string, then: (element: HTMLElement) => void): void {
  const end = performance.now() + 4000;
  const look = () => {
    const element = document.getElementById(id);
    if (element) then(element);
    else if (performance.now() < end) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

const SETTLING = 4000; // milliseconds
let going = 0; // the latest place to go to

/** Scroll to an element, once it is there. */
export const goTo = (id: string, focused = true): void =>
  whenThere(id, (there) => {
    if (focused) there.focus({ preventScroll: true });
    // What is above gets its height only as it is drawn: until that is over, or the reader acts.
    const [mine, end] = [++going, performance.now() + SETTLING];
    for (const act of ["wheel", "pointerdown", "keydown"])
      addEventListener(act, () => (going += Number(mine === going)), { once: true, passive: true });
    const scroll = (before: number) => {
      if (mine !== going || !there.isConnected || performance.now() > end) return;
      const place = () => there.getBoundingClientRect().top + scrollY;
      if (place() !== before) there.scrollIntoView({ block: focused ? "start" : "nearest" });
      const now = place();
      requestAnimationFrame(() => scroll(now));
    };
    scroll(Number.NaN);
  });

/** Open a block, or with "" none: then back to where the block stands in the machine. */
export function openBlock(id: string): void {
  const from = page.view.open;
  page.show({ open: id }, true);
  if (id) goTo(`inside-${id}`);
  else
    whenThere(`block-${from}`, (there) => {
      there.scrollIntoView({ block: "center" });
      there.querySelector("button")?.focus({ preventScroll: true });
    });
}

/** To a part of the open block, its heads first. */
export const openPart = (id: string, name: string) => goTo(`part-${id}-${name}`);

/** Open the block that holds a quantity, there. */
export function openQuantity(address: string): void {
  focus.every ||= isDetail(address);
  page.show({ open: blockOf(address), head: headOf(address) ?? page.view.head }, true);
  goTo(`q-${address}`);
}
