import type { Language } from "./messages";
import { onSite } from "./site";
import { readTensors, type Tensor } from "./tensors";
import type {
  Asked,
  CausalMap,
  Choice,
  Doubt,
  Drawing,
  Forced,
  Learning,
  Machine,
  Receipt,
  Run,
  Search,
  Taken,
  Tokenising,
  Why,
  Without,
} from "./types";

/** What the server refused, in its words: what is wrong, what was found, what to do. */
export class Refused extends Error {
  constructor(
    readonly what: string,
    readonly found = "",
    readonly todo = "",
    readonly status = 400,
  ) {
    super(what);
  }
}

/** The page is one file: its answers stand in it. */
export const alone = "vidrio" in globalThis;
const filed = () => import("./filed");
let python: Promise<typeof import("./python")> | undefined;
const inBrowser = () => (python ??= import("./python")); // to import it again would wait until the page is drawn

const KEY = "vidrio.key"; // for as long as the tab is open
/** The API key that the reader gave, for a server that needs one. */
export const giveKey = (key: string): void => sessionStorage.setItem(KEY, key);
function withKey(): Record<string, string> {
  try {
    const key = sessionStorage.getItem(KEY);
    return key ? { Authorization: `Bearer ${key}` } : {};
  } catch {
    return {}; // a browser may forbid it
  }
}

async function post(path: string, body: object, signal?: AbortSignal): Promise<Response> {
  if (onSite) return (await inBrowser()).ask(path, body, signal);
  const answer = await fetch(`api/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...withKey() },
    body: JSON.stringify(body),
    signal: signal ?? null,
  });
  if (answer.ok) return answer;
  const told = (await answer.json().catch(() => ({}))) as { what?: string; found?: string; do?: string };
  throw new Refused(told.what ?? `${answer.status} ${answer.statusText}`, told.found, told.do, answer.status);
}

const json = async <T>(path: string, body: object, signal?: AbortSignal): Promise<T> =>
  (alone ? await (await filed()).answer(path, body) : await (await post(path, body, signal)).json()) as T;

export async function models(): Promise<{ default: string; models: string[] }> {
  if (alone) return { default: "", models: [] };
  if (!onSite) return (await fetch("api/models")).json();
  const { default: first, names } = await (await inBrowser()).site;
  return { default: first, models: names };
}
interface Lessons {
  contents: { name: string; sections: string[] }[];
  sections: Record<string, string>; // by place: nan/2
}
const written = async (language: Language): Promise<Lessons> => (await fetch(`lessons.${language}.json`)).json();
export const lessons = async (language: Language): Promise<Lessons["contents"]> =>
  onSite ? (await written(language)).contents : (await fetch(`api/lessons?language=${language}`)).json();
/** A section of a lesson, as HTML. */
export const lesson = async (place: string, language: Language): Promise<string> => {
  if (onSite) return (await written(language)).sections[place] ?? "";
  const answer = await fetch(`api/lessons/${place}?language=${language}`);
  return answer.ok ? ((await answer.json()) as { html: string }).html : "";
};
export const machine = (asked: Asked, signal?: AbortSignal) => json<Machine>("machine", asked, signal);
export const translate = (asked: Asked, signal?: AbortSignal) =>
  json<{ translation: string | null; doubts?: Doubt[] }>("translate", asked, signal);
export const run = (asked: Asked, signal?: AbortSignal) => json<Run>("run", asked, signal);
export const search = (asked: Asked, signal?: AbortSignal) => json<Search>("search", asked, signal);
export const choose = (asked: Asked, how: Drawing, signal?: AbortSignal) =>
  json<Choice>("choose", { ...asked, ...how }, signal);
export const why = (asked: Asked, of: { step: number } | { word: string }, rival: string, signal?: AbortSignal) =>
  json<Why>("why", { ...asked, ...of, rival }, signal);
export const without = (asked: Asked, signal?: AbortSignal) => json<Without>("why_words", asked, signal);
export const heads = (asked: Asked, signal?: AbortSignal) => json<{ heads: Taken[] }>("why_heads", asked, signal);
export const causes = (asked: Asked, step: number, rival: string, other: string, signal?: AbortSignal) =>
  json<CausalMap>("why_rows", { ...asked, step, rival, other }, signal);
/** The whole table of positions, and how long each column's wave is, where it is one. */
export const positions = async (asked: Asked, address: string, signal?: AbortSignal): Promise<Map<string, Tensor>> =>
  alone
    ? new Map([...(await tensors(asked, [address])).values()].map((tensor) => ["positions", tensor]))
    : readTensors(await (await post("positions", { ...asked, address }, signal)).arrayBuffer());
export const tokenising = (asked: Asked, signal?: AbortSignal) => json<Tokenising>("tokens", asked, signal);
export const receipt = (asked: Asked, address: string, signal?: AbortSignal) =>
  json<Receipt>("receipt", { ...asked, address }, signal);
export const learning = (asked: Asked, signal?: AbortSignal) => json<Learning>("learning", asked, signal);
export const forced = (asked: Asked, answer: string, signal?: AbortSignal) =>
  json<Forced>("forced", { ...asked, answer }, signal);
export const copy = async (asked: Asked, address: string, kind: string): Promise<string> =>
  (await post("copy", { ...asked, address, kind })).text();

/** Those of the quantities that the run has. */
export async function tensors(asked: Asked, addresses: string[], signal?: AbortSignal): Promise<Map<string, Tensor>> {
  if (!addresses.length) return new Map();
  if (alone) return (await filed()).tensors(addresses);
  return readTensors(await (await post("tensors", { ...asked, addresses, if_there: true }, signal)).arrayBuffer());
}
