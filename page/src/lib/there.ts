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

/** Scroll to an element, once it is there. */
export const goTo = (id: string, focused = true): void =>
  whenThere(id, (there) => {
    if (focused) there.focus({ preventScroll: true });
    // What comes into sight on the way gets its own height only then.
    const scroll = (frames: number) => {
      there.scrollIntoView({ block: focused ? "start" : "nearest" });
      if (frames) requestAnimationFrame(() => scroll(frames - 1));
    };
    scroll(6);
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
