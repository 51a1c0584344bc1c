/** Sends the page's requests to Python in a web worker, one at a time. */

import { Refusal } from "./api";
import { firstRun } from "./first";
import { progress } from "./progress.svelte";
import type { Site, WorkerMessage, WorkerRequest } from "./site";

/** How long, in milliseconds, an aborted request may keep running before Python is restarted. */
const PATIENCE = 4000;

interface Pending extends WorkerRequest {
  settle: (status: string, answer: string | Uint8Array) => void;
  signal: AbortSignal | undefined;
}

const queue: Pending[] = [];
let current: Pending | undefined;

export const site: Promise<Site> = fetch("site.json").then((answer) => answer.json() as Promise<Site>);

const precomputed = site.then(firstRun).catch(() => () => undefined);
let answered: object | undefined; // the last run that was answered from the precomputed data
let worker = site.then(start);

function start(site: Site): Worker {
  const started = new Worker("worker.js");
  started.onmessage = ({ data }: MessageEvent<WorkerMessage>) => receive(data, started);
  started.postMessage({ site });
  return started;
}

/** Stops an aborted request by replacing the worker, because Python cannot be interrupted. */
async function restart(request: Pending): Promise<void> {
  const old = await worker;
  if (current !== request) return;
  old.terminate();
  [current, progress.ready] = [undefined, false];
  worker = site.then(start);
  sendNext(await worker);
}

/** Restarts Python if an aborted request keeps running, but not during a download, which would start again. */
function restartLater(request: Pending): void {
  const { ready } = progress;
  setTimeout(() => {
    if (current !== request) return;
    if (ready && progress.ready) void restart(request);
    else restartLater(request);
  }, PATIENCE);
}

function receive(message: WorkerMessage, from: Worker): void {
  if (message.kind === "loading")
    [progress.done, progress.total, progress.ready] = [message.done, message.total, false];
  if (message.kind === "ready") {
    progress.ready = true;
    if (answered) void ask("run", answered); // run it in Python, too, for follow-up requests
    answered = undefined;
  }
  if (message.kind !== "answer") return;
  progress.ready = true;
  const done = current;
  current = undefined;
  sendNext(from);
  done?.settle(message.status, message.answer);
}

function sendNext(to: Worker): void {
  if (current) return;
  do current = queue.shift();
  while (current?.signal?.aborted);
  if (current) to.postMessage({ path: current.path, body: current.body } satisfies WorkerRequest);
}

/** Sends a request and returns the answer as a Response, as if it came from the server. */
export async function ask(path: string, body: object, signal?: AbortSignal): Promise<Response> {
  const to = await worker;
  const known = progress.ready ? undefined : (await precomputed)(path, body);
  if (known) {
    if (path === "run") answered = body;
    return new Response(known);
  }
  return new Promise((resolve, reject) => {
    const request: Pending = {
      path,
      body: JSON.stringify(body),
      signal,
      settle(status, answer) {
        if (status === "ok") resolve(new Response(answer as BodyInit));
        else if (status === "refused") {
          const error = JSON.parse(answer as string) as { what: string; found: string; do: string };
          reject(new Refusal(error.what, error.found, error.do));
        } else reject(new Error(answer as string));
      },
    };
    signal?.addEventListener("abort", () => {
      reject(signal.reason);
      if (current === request) restartLater(request);
    });
    queue.push(request);
    sendNext(to);
  });
}

Object.assign(globalThis, { vidrio: { ask } }); // for tests and the browser console
