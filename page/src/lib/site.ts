/** The format of site.json, which `vidrio site` writes, and the messages between the page and its worker. */

export interface Site {
  version: string;
  default: string; // the model selected at startup
  names: string[]; // all models
  models: Record<string, string>; // the URLs of the large models; `app` contains the small ones
  runtime: Record<"wasm" | "code" | "loader" | "stdlib" | "packages", string>;
  app: string;
  first: string; // the URL of the precomputed run
  sizes: Record<string, number>; // the download size of each URL, in bytes
}

export interface WorkerRequest {
  path: string;
  body: string;
}

/** A message from the worker to the page. */
export type WorkerMessage =
  | { kind: "loading"; done: number; total: number }
  | { kind: "ready" }
  | { kind: "answer"; status: string; answer: string | Uint8Array };

/** Whether the page belongs to a static site, where Python runs in a web worker. */
export const onSite = typeof document !== "undefined" && "site" in document.documentElement.dataset;
