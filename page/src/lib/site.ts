/** A site of static files (`vidrio site`): what its writer says of it, and what page and worker say to each other. */

export interface Site {
  version: string;
  default: string; // the model that comes first
  names: string[]; // all that may be looked into
  models: Record<string, string>; // where the files of the large ones are; the lessons' are in `app`
  runtime: Record<"wasm" | "code" | "loader" | "stdlib" | "packages", string>;
  app: string;
  first: string; // the answers to the first questions
  sizes: Record<string, number>; // of each file, on the wire
}

export interface Ask {
  id: number;
  path: string;
  body: string;
}

export type Heard =
  | { kind: "loading"; done: number; total: number }
  | { kind: "ready" }
  | { kind: "answer"; id: number; status: string; answer: string | Uint8Array };

/** The page stands on static files: Python answers in a worker of the browser. */
export const onSite = typeof document !== "undefined" && "site" in document.documentElement.dataset;
