/**
 * A web worker that runs Python and handles the page's requests one at a time, with the same code as `vidrio serve`.
 * The default model is downloaded at startup, and other large models on first use.
 */

import type { Site, WorkerMessage, WorkerRequest } from "../lib/site";

interface Result<T> {
  toJs(): T;
  destroy(): void;
}

type Answer = (name: string, body: string) => Result<[string, string | Uint8Array]>;

interface Python {
  FS: { mkdirTree(path: string): void; writeFile(path: string, data: Uint8Array, how: { canOwn: boolean }): void };
  _module: { LDSO: { loadedLibsByName: { __main__: { exports: Record<string, () => number> } } } };
  runPython<T>(code: string): T;
}

const scope = globalThis as unknown as {
  importScripts(url: string): void;
  loadPyodide(options: object): Promise<Python>;
  postMessage(message: WorkerMessage, transfer?: Transferable[]): void;
  fetch: typeof fetch;
};
const STORE = "vidrio-unpacked";
const DELAY = 3000; // milliseconds before the bytecode is cached, so that caching does not delay the first requests
const download = fetch; // saved here because start() replaces the global function

/** Opens the cache, which is unavailable over plain HTTP or if the browser blocks storage. */
const open = async () => ("caches" in globalThis ? caches.open(STORE).catch(() => null) : null);

async function store(url: string, data: Uint8Array<ArrayBuffer>): Promise<void> {
  // If the disk is full, the file is downloaded again next time.
  await (await open())?.put(url, new Response(data)).catch(() => undefined);
}

async function stored(url: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const found = await (await open())?.match(url);
  return found && new Uint8Array(await found.arrayBuffer());
}

/** Returns the decompressed contents of a file. Downloads and caches the file if necessary. */
async function bytes(url: string, size: number, onBytes: (count: number) => void): Promise<Uint8Array<ArrayBuffer>> {
  const known = await stored(url);
  if (known) {
    onBytes(size);
    return known;
  }
  const answer = await download(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${answer.statusText}`);
  const counted = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, to) {
      onBytes(chunk.length);
      to.enqueue(chunk);
    },
  });
  const unpacked = (answer.body as ReadableStream<Uint8Array<ArrayBuffer>>)
    .pipeThrough(counted)
    .pipeThrough(new DecompressionStream("gzip"));
  const data = new Uint8Array(await new Response(unpacked).arrayBuffer());
  await store(url, data);
  return data;
}

/** Unpacks an archive into Python's file system. The archive's header lists each file's offset and size. */
function unpack(python: Python, pack: Uint8Array, folder: string): void {
  const length = new DataView(pack.buffer, pack.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(pack.subarray(4, 4 + length))) as Record<string, [number, number]>;
  const folders = new Set<string>();
  for (const [name, [at, size]] of Object.entries(header)) {
    const path = `${folder}/${name}`;
    const within = path.slice(0, path.lastIndexOf("/"));
    if (!folders.has(within)) python.FS.mkdirTree(within);
    folders.add(within);
    python.FS.writeFile(path, pack.subarray(4 + length + at, 4 + length + at + size), { canOwn: true });
  }
}

const script = (code: Uint8Array<ArrayBuffer>) => {
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  scope.importScripts(url);
  URL.revokeObjectURL(url);
};

async function start(site: Site) {
  const first = [...Object.values(site.runtime), site.app, site.models[site.default] ?? []].flat();
  const total = first.reduce((sum, url) => sum + (site.sizes[url] ?? 0), 0);
  let done = 0;
  const load = (url: string) =>
    bytes(url, site.sizes[url] ?? 0, (count) => {
      done += count;
      scope.postMessage({ kind: "loading", done, total });
    });
  const { wasm, code, loader, stdlib, packages } = site.runtime;
  const loaded: Record<string, Promise<Uint8Array<ArrayBuffer>>> = {};
  const large = site.models[site.default];
  if (large) loaded[site.default] = load(large);
  const [binary, library, app, numpy] = [wasm, stdlib, site.app, packages].map(load) as Promise<
    Uint8Array<ArrayBuffer>
  >[];
  const compiled = `${site.app}?compiled`; // the cache key of the bytecode, which is compiled on the first visit
  const ready = stored(compiled);
  script(await load(loader));
  script(await load(code));
  // Intercept Pyodide's requests and serve the decompressed files from above, along with an empty package list.
  const types: Record<string, string> = { wasm: "application/wasm", json: "application/json" };
  scope.fetch = async (from) => {
    const name =
      String(from instanceof Request ? from.url : from)
        .split("/")
        .at(-1) ?? "";
    const type = types[name.split(".").at(-1) ?? ""] ?? "application/octet-stream";
    const lock = JSON.stringify({
      info: { arch: "wasm32", platform: "emscripten_3_1_45", version: "0.24.1" },
      packages: {},
    });
    return new Response(name.endsWith("json") ? lock : await (name.endsWith("wasm") ? binary : library), {
      headers: { "Content-Type": type },
    });
  };
  const python = await scope.loadPyodide({ indexURL: `${location.origin}/python/`, fullStdLib: false });
  // NumPy calls backtrace() to decide whether to reuse a temporary array. With an empty backtrace, it makes a copy.
  python._module.LDSO.loadedLibsByName.__main__.exports.backtrace = () => 0;
  const before = await ready;
  for (const pack of [await app, await numpy, before]) if (pack) unpack(python, pack, "/site");
  const answer = python.runPython<Answer>(`
import sys
sys.dont_write_bytecode = False
sys.path.insert(0, "/site")
from vidrio.site.answering import answering
answering(${JSON.stringify(site.names)})`);
  let compiledStored = before !== undefined;
  const storeCompiled = () => {
    const made = python.runPython<Result<Uint8Array<ArrayBuffer>>>(
      'from vidrio.site.packing import compiled; compiled("/site")',
    );
    void store(compiled, made.toJs());
    made.destroy();
  };
  const installed = new Set<string>();
  return async ({ path, body }: WorkerRequest): Promise<[string, string | Uint8Array]> => {
    const model = (JSON.parse(body) as { model?: string }).model || site.default;
    const url = site.models[model];
    if (url && !installed.has(model)) {
      const size = site.sizes[url] ?? 0;
      let got = 0;
      loaded[model] ??= bytes(url, size, (count) => {
        got += count;
        scope.postMessage({ kind: "loading", done: got, total: size });
      });
      try {
        unpack(python, await loaded[model], `/site/vidrio/models/${model}`);
      } finally {
        delete loaded[model]; // after a failed download, the next request tries again
      }
      installed.add(model);
    }
    if (path !== "translate" && !compiledStored) {
      compiledStored = true;
      setTimeout(storeCompiled, DELAY);
    }
    const proxy = answer(path, body);
    const result = proxy.toJs();
    proxy.destroy();
    return result;
  };
}

let answering: ReturnType<typeof start> | undefined;
addEventListener("message", async ({ data }: MessageEvent<WorkerRequest | { site: Site }>) => {
  if ("site" in data) {
    answering = start(data.site);
    await answering.then(
      () => scope.postMessage({ kind: "ready" }),
      () => undefined, // the next request reports the error
    );
    return;
  }
  try {
    const [status, answer] = (await (await answering)?.(data)) ?? ["failed", "not started"];
    scope.postMessage({ kind: "answer", status, answer }, typeof answer === "string" ? [] : [answer.buffer]);
  } catch (error) {
    scope.postMessage({ kind: "answer", status: "failed", answer: String(error) });
  }
});
