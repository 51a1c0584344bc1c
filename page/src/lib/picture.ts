/**
 * Saves part of the page as SVG or PNG, with the elements' computed colours and positions. HTML elements are drawn as
 * rectangles and text, and canvases as rectangles or, if they are large, as embedded images.
 */

import { save } from "./download";

const CELLS = 6000; // canvases with more pixels are embedded as images
const EDGE = 12; // the margin around the picture, in pixels
const STYLES = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "opacity",
  "font-size",
  "font-weight",
  "text-anchor",
  "dominant-baseline",
];
const FONT = "Inter, system-ui, sans-serif";

type Box = { x: number; y: number; width: number; height: number };
type Attributes = Record<string, string | number>;

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
const tag = (name: string, attributes: Attributes, inside = "") =>
  `<${name}${Object.entries(attributes)
    .map(
      ([key, value]) =>
        ` ${key}="${escaped(typeof value === "number" ? String(Math.round(value * 100) / 100) : value)}"`,
    )
    .join("")}>${inside}</${name}>`;
const isVisible = (colour: string) => colour !== "transparent" && !/rgba\(.*, 0\)|\/ 0\)/.test(colour);

function svgOf(root: HTMLElement): string {
  const origin = root.getBoundingClientRect();
  const parts: string[] = [];
  let [right, bottom] = [origin.width, origin.height];
  const place = (box: DOMRect): Box => {
    const [x, y] = [box.left - origin.left, box.top - origin.top];
    right = Math.max(right, x + box.width);
    bottom = Math.max(bottom, y + box.height);
    return { x, y, width: box.width, height: box.height };
  };

  function walk(element: Element): void {
    const style = getComputedStyle(element);
    const bare = element.getBoundingClientRect();
    if (style.display === "none" || style.visibility === "hidden" || style.opacity === "0") return;
    if (element.matches(".only-read, [data-no-picture], input, select, textarea, .katex-mathml")) return;
    if (element instanceof SVGSVGElement) {
      parts.push(
        tag("g", { transform: `translate(${bare.left - origin.left} ${bare.top - origin.top})` }, drawn(element)),
      );
      place(bare);
      return;
    }
    if (element instanceof HTMLCanvasElement) {
      parts.push(cells(element, place(bare)));
      return;
    }
    box(style, bare);
    for (const child of element.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) write(child as Text, style);
      else if (child instanceof Element) walk(child);
    }
  }

  function box(style: CSSStyleDeclaration, bare: DOMRect): void {
    const border = Number.parseFloat(style.borderTopWidth) > 0 && Number.parseFloat(style.borderLeftWidth) > 0;
    const filled = isVisible(style.backgroundColor);
    if (!bare.width || !bare.height || !(border || filled)) return;
    const radius = Math.min(Number.parseFloat(style.borderTopLeftRadius) || 0, bare.height / 2);
    parts.push(
      tag("rect", {
        ...place(bare),
        rx: radius,
        fill: filled ? style.backgroundColor : "none",
        ...(border ? { stroke: style.borderTopColor, "stroke-width": Number.parseFloat(style.borderTopWidth) } : {}),
      }),
    );
  }

  /** Draws a text node, word by word if it wraps. */
  function write(node: Text, style: CSSStyleDeclaration): void {
    const range = document.createRange();
    for (const { index, 0: word } of node.data.matchAll(/\S+(?:[ ]\S+)*|\S+/g)) {
      const pieces = [...word.matchAll(/\S+/g)].map((piece) => [index + piece.index, piece[0]] as const);
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const whole = range.getClientRects().length === 1 ? [[index, word] as const] : pieces;
      for (const [start, text] of whole) {
        range.setStart(node, start);
        range.setEnd(node, start + text.length);
        const at = range.getBoundingClientRect();
        if (!at.width) continue;
        const { x, y, width, height } = place(at);
        parts.push(
          tag(
            "text",
            {
              x,
              y: y + height / 2,
              "dominant-baseline": "central",
              "font-family": style.fontFamily.includes("mono") ? "monospace" : FONT,
              "font-size": Number.parseFloat(style.fontSize),
              "font-weight": style.fontWeight,
              fill: style.color,
              textLength: width,
              lengthAdjust: "spacingAndGlyphs",
            },
            escaped(text),
          ),
        );
      }
    }
  }

  root.classList.add("whole"); // lays out elements outside the viewport, too
  walk(root);
  root.classList.remove("whole");
  const size = { width: Math.ceil(right) + 2 * EDGE, height: Math.ceil(bottom) + 2 * EDGE };
  const paper = getComputedStyle(root.closest(".card, aside") ?? document.body).backgroundColor;
  const background = tag("rect", { ...size, fill: isVisible(paper) ? paper : "#ffffff" });
  return tag(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", ...size, viewBox: `0 0 ${size.width} ${size.height}` },
    background + tag("g", { transform: `translate(${EDGE} ${EDGE})` }, parts.join("")),
  );
}

/** Returns the source of an SVG element, with its computed styles as attributes. */
function drawn(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const originals = svg.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((element, n) => {
    const style = getComputedStyle(originals[n] as Element);
    for (const name of STYLES) element.setAttribute(name, style.getPropertyValue(name));
    if (element.tagName === "text") element.setAttribute("font-family", FONT);
    for (const name of ["class", "style", "role", "data-address"]) element.removeAttribute(name);
  });
  const box = svg.getBoundingClientRect();
  const view = svg.viewBox.baseVal;
  const scale = view?.width ? ` scale(${box.width / view.width})` : "";
  return tag(
    "g",
    scale ? { transform: scale.trim() } : {},
    new XMLSerializer().serializeToString(copy).replace(/^<svg[^>]*>|<\/svg>$/g, ""),
  );
}

function cells(canvas: HTMLCanvasElement, at: Box): string {
  const { width, height } = canvas;
  if (width * height > CELLS)
    return tag("image", {
      ...at,
      href: canvas.toDataURL(),
      "image-rendering": "pixelated",
      preserveAspectRatio: "none",
    });
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  if (!context) return "";
  context.drawImage(canvas, 0, 0);
  const pixels = context.getImageData(0, 0, width, height).data;
  const [w, h] = [at.width / width, at.height / height];
  return Array.from({ length: width * height }, (_, i) => {
    const [r, g, b, a] = pixels.slice(4 * i, 4 * i + 4);
    const [x, y] = [at.x + (i % width) * w, at.y + Math.floor(i / width) * h];
    return a ? tag("rect", { x, y, width: w, height: h, fill: `rgb(${r},${g},${b})` }) : "";
  }).join("");
}

export function saveSvg(root: HTMLElement, name: string): void {
  save(new Blob([svgOf(root)], { type: "image/svg+xml" }), `${name}.svg`);
}

/** Saves part of the page as a PNG with two image pixels per CSS pixel. */
export async function savePng(root: HTMLElement, name: string): Promise<void> {
  const image = new Image();
  const source = URL.createObjectURL(new Blob([svgOf(root)], { type: "image/svg+xml" }));
  image.src = source;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(source);
  canvas.toBlob((picture) => picture && save(picture, `${name}.png`));
}
