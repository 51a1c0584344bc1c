/** The format of a static site’s site.json (`vidrio site`), and the messages between the page and its worker. */

export interface Site {
  version: string;
  default: string; // the name of the model that is selected at first
  names: string[]; // the names of all models
  models: Record<string, string>; // the URLs of the large models; `app` contains the small ones
  runtime: Record<"wasm" | "code" | "loader" | "stdlib" | "packages", string>;
  app: string;
  first: string; // the URL of the precomputed run
  sizes: Record<string, number>; // the number of bytes to download from each URL
}

/** A request from the page to the worker. */
export interface WorkerRequest {
  id: number;
  path: string;
  body: string;
}

/** A message from the worker to the page. */
export type WorkerMessage =
  | { kind: "loading"; done: number; total: number }
  | { kind: "ready" }
  | { kind: "answer"; id: number; status: string; answer: string | Uint8Array };

/** Whether the page is a static site, where Python runs in a web worker. */
export const onSite = typeof document !== "undefined" && "site" in document.documentElement.dataset;
