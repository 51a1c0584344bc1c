import { Refused } from "./api";
import { firstRun } from "./first";
import { loading } from "./loading.svelte";
import type { Ask, Heard, Site } from "./site";

/** Milliseconds that an abandoned question may keep running before Python is restarted. */
const PATIENCE = 4000;

interface Waiting extends Ask {
  answered: (status: string, answer: string | Uint8Array) => void;
  signal: AbortSignal | undefined;
}

const waiting: Waiting[] = [];
let asked: Waiting | undefined; // the worker does one thing at a time; what was aborted before never reaches it
let count = 0;

export const site: Promise<Site> = fetch("site.json").then((answer) => answer.json() as Promise<Site>);

const first = site.then(firstRun).catch(() => () => undefined);
let shown: object | undefined; // the run that was answered without Python
let worker = site.then(start);

function start(told: Site): Worker {
  const started = new Worker("worker.js");
  started.onmessage = ({ data }: MessageEvent<Heard>) => hear(data, started);
  started.postMessage({ site: told });
  return started;
}

/** Stop a question whose answer is no longer needed. Python cannot be interrupted, so its worker is replaced. */
async function giveUp(question: Waiting): Promise<void> {
  const old = await worker;
  if (asked !== question) return;
  old.terminate();
  [asked, loading.ready] = [undefined, false];
  worker = site.then(start);
  next(await worker);
}

function hear(heard: Heard, to: Worker): void {
  if (heard.kind === "loading") [loading.done, loading.total, loading.ready] = [heard.done, heard.total, false];
  if (heard.kind === "ready") {
    loading.ready = true;
    // So that Python has what the next question about this run needs.
    if (shown) void ask("run", shown);
    shown = undefined;
  }
  if (heard.kind !== "answer") return;
  loading.ready = true;
  const over = asked;
  asked = undefined;
  next(to);
  over?.answered(heard.status, heard.answer);
}

function next(to: Worker): void {
  if (asked) return;
  do asked = waiting.shift();
  while (asked?.signal?.aborted);
  if (asked) to.postMessage({ id: asked.id, path: asked.path, body: asked.body } satisfies Ask);
}

/** Python's answer, as the server would give it. */
export async function ask(path: string, body: object, signal?: AbortSignal): Promise<Response> {
  const to = await worker;
  const told = loading.ready ? undefined : (await first)(path, body);
  if (told) {
    if (path === "run") shown = body;
    return new Response(told);
  }
  return new Promise((resolve, reject) => {
    const question: Waiting = {
      id: ++count,
      path,
      body: JSON.stringify(body),
      signal,
      answered(status, answer) {
        if (status === "ok") resolve(new Response(answer as BodyInit));
        else if (status === "refused") {
          const told = JSON.parse(answer as string) as { what: string; found: string; do: string };
          reject(new Refused(told.what, told.found, told.do));
        } else reject(new Error(answer as string));
      },
    };
    signal?.addEventListener("abort", () => {
      reject(signal.reason);
      if (asked === question) setTimeout(() => void giveUp(question), PATIENCE);
    });
    waiting.push(question);
    next(to);
  });
}

Object.assign(globalThis, { vidrio: { ask } }); // at hand in the console, as in a page that is one file
