/** Opens blocks and tensors, and scrolls to them. */

import { focus } from "./focus.svelte";
import { blockOf, headOf, isDetail, isStored } from "./plan";
import { page } from "./state.svelte";

const APPEARS = 20_000; // the maximum wait for an element, in milliseconds
const SETTLES = 4000; // milliseconds without movement before scrolling stops

/** Waits for an element to appear and passes it to `then`. */
function whenPresent(id: string, then: (element: HTMLElement) => void): void {
  const end = performance.now() + APPEARS;
  const check = () => {
    const element = document.getElementById(id);
    if (element) then(element);
    else if (performance.now() < end) requestAnimationFrame(check);
  };
  requestAnimationFrame(check);
}

let latest = 0;

/** Scrolls to an element once it exists, and again whenever it moves, until it settles or the user takes over. */
export const goTo = (id: string, focused = true): void =>
  whenPresent(id, (element) => {
    if (focused) element.focus({ preventScroll: true });
    const mine = ++latest;
    let end = performance.now() + SETTLES;
    for (const action of ["wheel", "pointerdown", "keydown"])
      addEventListener(action, () => (latest += Number(mine === latest)), { once: true, passive: true });
    const scroll = (before: number) => {
      if (mine !== latest || !element.isConnected || performance.now() > end) return;
      const top = () => element.getBoundingClientRect().top + scrollY;
      if (top() !== before) {
        element.scrollIntoView({ block: focused ? "start" : "nearest" });
        end = performance.now() + SETTLES;
      }
      const now = top();
      requestAnimationFrame(() => scroll(now));
    };
    scroll(Number.NaN);
  });

/** Opens a block. If `id` is empty, closes the open block and scrolls back to it in the overview. */
export function openBlock(id: string): void {
  const open = page.view.open;
  page.show({ open: id }, true);
  if (id) goTo(`inside-${id}`);
  else
    whenPresent(`block-${open}`, (block) => {
      block.scrollIntoView({ block: "center" });
      block.querySelector("button")?.focus({ preventScroll: true });
    });
}

export const openPart = (id: string, name: string) => goTo(`part-${id}-${name}`);

/** Opens the block that contains a tensor, and scrolls to it or, for a parameter, to what is computed from it. */
export function openQuantity(address: string): void {
  const stored = isStored(page.stages.get(address));
  const user = stored && page.machine?.stages.find(({ inputs }) => inputs.includes(address));
  if (user) {
    openQuantity(user.address);
    return;
  }
  focus.details ||= isDetail(address);
  page.show({ open: blockOf(address), head: headOf(address) ?? page.view.head }, true);
  goTo(`q-${address}`);
}
