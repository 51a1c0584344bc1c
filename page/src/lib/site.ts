/** A static site (`vidrio site`): its description in site.json, and the messages between the page and its worker. */

export interface Site {
  version: string;
  default: string; // the first model
  names: string[]; // all models
  models: Record<string, string>; // URLs of the large models; `app` contains the small ones
  runtime: Record<"wasm" | "code" | "loader" | "stdlib" | "packages", string>;
  app: string;
  first: string; // the precomputed run
  sizes: Record<string, number>; // bytes transferred, by URL
}

/** A request to the worker. */
export interface WorkerRequest {
  id: number;
  path: string;
  body: string;
}

/** A message from the worker. */
export type WorkerMessage =
  | { kind: "loading"; done: number; total: number }
  | { kind: "ready" }
  | { kind: "answer"; id: number; status: string; answer: string | Uint8Array };

/** The page is a static site; Python runs in a web worker. */
export const onSite = typeof document !== "undefined" && "site" in document.documentElement.dataset;
