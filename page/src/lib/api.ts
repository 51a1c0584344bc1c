/** Requests are answered by the server, by Python in the browser, or by the data embedded in a standalone file. */

import type { Language } from "./messages";
import { onSite } from "./site";
import { readTensors, type Tensor } from "./tensors";
import type {
  CausalMap,
  Choice,
  FactWarning,
  Forced,
  Learning,
  Machine,
  Query,
  Receipt,
  Removal,
  Run,
  Sampling,
  Search,
  Tokenising,
  Why,
  Without,
} from "./types";

/** An error response: what went wrong, the details, and how to fix it. */
export class Refusal extends Error {
  constructor(
    readonly what: string,
    readonly found = "",
    readonly todo = "",
    readonly status = 400,
  ) {
    super(what);
  }
}

/** Whether the page is a standalone file with embedded data. */
export const standalone = "vidrio" in globalThis;
const embedded = () => import("./embedded");
let python: Promise<typeof import("./python")> | undefined;
const inBrowser = () => (python ??= import("./python")); // cached, because a repeated import would wait for rendering

const KEY = "vidrio.key";
let key = "";
/** Stores an API key until the tab is closed. */
export function giveKey(given: string): void {
  key = given;
  try {
    sessionStorage.setItem(KEY, key);
  } catch {
    // If the browser blocks storage, the key lasts until the page is closed.
  }
}
function authorization(): Record<string, string> {
  try {
    key ||= sessionStorage.getItem(KEY) ?? "";
  } catch {
    // the browser blocks storage
  }
  return key ? { Authorization: `Bearer ${key}` } : {};
}

async function post(path: string, body: object, signal?: AbortSignal): Promise<Response> {
  if (onSite) return (await inBrowser()).ask(path, body, signal);
  const response = await fetch(`api/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...authorization() },
    body: JSON.stringify(body),
    signal: signal ?? null,
  });
  if (response.ok) return response;
  const error = (await response.json().catch(() => ({}))) as { what?: string; found?: string; do?: string };
  throw new Refusal(error.what ?? `${response.status} ${response.statusText}`, error.found, error.do, response.status);
}

const json = async <T>(path: string, body: object, signal?: AbortSignal): Promise<T> =>
  (standalone ? await (await embedded()).answer(path, body) : await (await post(path, body, signal)).json()) as T;

export async function models(): Promise<{ default: string; models: string[] }> {
  if (standalone) return { default: "", models: [] };
  if (!onSite) return (await fetch("api/models")).json();
  const { default: first, names } = await (await inBrowser()).site;
  return { default: first, models: names };
}
interface Lessons {
  contents: { name: string; sections: string[] }[];
  sections: Record<string, string>; // the HTML of each section, keyed by lesson and section number, such as nan/2
}
const lessonFile = async (language: Language): Promise<Lessons> => (await fetch(`lessons.${language}.json`)).json();
export const lessons = async (language: Language): Promise<Lessons["contents"]> =>
  onSite ? (await lessonFile(language)).contents : (await fetch(`api/lessons?language=${language}`)).json();
/** Returns the HTML of a lesson section, or an empty string if the section is unavailable. */
export const lesson = async (section: string, language: Language): Promise<string> => {
  if (onSite) return (await lessonFile(language)).sections[section] ?? "";
  const response = await fetch(`api/lessons/${section}?language=${language}`);
  return response.ok ? ((await response.json()) as { html: string }).html : "";
};
export const machine = (query: Query, signal?: AbortSignal) => json<Machine>("machine", query, signal);
export const translate = (query: Query, signal?: AbortSignal) =>
  json<{ translation: string | null; warnings?: FactWarning[] }>("translate", query, signal);
export const run = (query: Query, signal?: AbortSignal) => json<Run>("run", query, signal);
export const search = (query: Query, signal?: AbortSignal) => json<Search>("search", query, signal);
export const choose = (query: Query, settings: Sampling, signal?: AbortSignal) =>
  json<Choice>("choose", { ...query, ...settings }, signal);
export const why = (query: Query, of: { step: number } | { word: string }, rival: string, signal?: AbortSignal) =>
  json<Why>("why", { ...query, ...of, rival }, signal);
export const without = (query: Query, signal?: AbortSignal) => json<Without>("why_words", query, signal);
export const heads = (query: Query, signal?: AbortSignal) => json<{ heads: Removal[] }>("why_heads", query, signal);
export const causes = (query: Query, step: number, rival: string, other: string, signal?: AbortSignal) =>
  json<CausalMap>("why_rows", { ...query, step, rival, other }, signal);
/** Returns the entire position table and, for sinusoidal positions, the wavelength of each column. */
export const positions = async (query: Query, address: string, signal?: AbortSignal): Promise<Map<string, Tensor>> =>
  standalone
    ? new Map([...(await tensors(query, [address])).values()].map((tensor) => ["positions", tensor]))
    : readTensors(await (await post("positions", { ...query, address }, signal)).arrayBuffer());
export const tokenising = (query: Query, signal?: AbortSignal) => json<Tokenising>("tokens", query, signal);
export const receipt = (query: Query, address: string, signal?: AbortSignal) =>
  json<Receipt>("receipt", { ...query, address }, signal);
export const learning = (query: Query, signal?: AbortSignal) => json<Learning>("learning", query, signal);
export const forced = (query: Query, answer: string, signal?: AbortSignal) =>
  json<Forced>("forced", { ...query, answer }, signal);
export const copy = async (query: Query, address: string, kind: string): Promise<string> =>
  (await post("copy", { ...query, address, kind })).text();

/** Returns the tensors at the given addresses. Addresses that do not exist in the run are skipped. */
export async function tensors(query: Query, addresses: string[], signal?: AbortSignal): Promise<Map<string, Tensor>> {
  if (!addresses.length) return new Map();
  if (standalone) return (await embedded()).tensors(addresses);
  return readTensors(await (await post("tensors", { ...query, addresses, if_there: true }, signal)).arrayBuffer());
}
