/** A layer's quantities come into the document one a frame; what leads to one waits for it. */
export function whenThere(id: string, then: (element: HTMLElement) => void): void {
  const end = performance.now() + 4000;
  const look = () => {
    const element = document.getElementById(id);
    if (element) then(element);
    else if (performance.now() < end) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}
