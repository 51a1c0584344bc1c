/** Python in the browser: loads what the page's writer laid out, and answers the page's questions with the very functions
 * that `vidrio serve` answers with. One question at a time; a model is fetched when it is first asked about, NumPy when
 * a question is about more than the translation. */

import type { Ask, Heard, Site } from "../lib/site";

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
  postMessage(message: Heard, transfer?: Transferable[]): void;
  fetch: typeof fetch;
};
const STORE = "vidrio-unpacked";
const CALM = 3000; // milliseconds after the first answer, when nobody waits for anything
const fetched = fetch;

const stored = async () => ("caches" in globalThis ? caches.open(STORE) : null); // none where the page came over plain HTTP

async function keep(url: string, data: Uint8Array<ArrayBuffer>): Promise<void> {
  await (await stored())?.put(url, new Response(data)).catch(() => undefined); // a full disk: it is loaded again next time
}

async function kept(url: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const found = await (await stored())?.match(url);
  return found && new Uint8Array(await found.arrayBuffer());
}

/** The unpacked bytes of a file: from the browser's store, or from where the page came from, and then they are stored. */
async function bytes(url: string, size: number, onBytes: (count: number) => void): Promise<Uint8Array<ArrayBuffer>> {
  const there = await kept(url);
  if (there) {
    onBytes(size);
    return there;
  }
  const answer = await fetched(url);
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
  await keep(url, data);
  return data;
}

/** Files one after the other, behind a header that says where each lies. */
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
  const { wasm, code, loader, stdlib } = site.runtime;
  const loaded: Record<string, Promise<Uint8Array<ArrayBuffer>>> = {};
  const large = site.models[site.default];
  if (large) loaded[site.default] = load(large);
  const [binary, library, app] = [load(wasm), load(stdlib), load(site.app)];
  const compiled = `${site.app}?compiled`; // what Python made of the app's sources at the first visit
  const ready = kept(compiled);
  script(await load(loader));
  script(await load(code));
  let numpy: Promise<Uint8Array> | undefined = load(site.runtime.packages);
  // What Pyodide asks for comes unpacked; it has no packages of its own.
  const types: Record<string, string> = { wasm: "application/wasm", json: "application/json" };
  scope.fetch = async (from) => {
    const name =
      String(from instanceof Request ? from.url : from)
        .split("/")
        .at(-1) ?? "";
    const type = types[name.split(".").at(-1) ?? ""] ?? "application/octet-stream";
    const told = JSON.stringify({
      info: { arch: "wasm32", platform: "emscripten_3_1_45", version: "0.24.1" },
      packages: {},
    });
    return new Response(name.endsWith("json") ? told : await (name.endsWith("wasm") ? binary : library), {
      headers: { "Content-Type": type },
    });
  };
  const python = await scope.loadPyodide({ indexURL: `${location.origin}/python/`, fullStdLib: false });
  // NumPy asks who calls it, to save itself copies; nobody can say here, and then it makes them.
  python._module.LDSO.loadedLibsByName.__main__.exports.backtrace = () => 0;
  unpack(python, await app, "/site");
  const before = await ready;
  if (before) unpack(python, before, "/site");
  const answer = python.runPython<Answer>(`
import sys
sys.dont_write_bytecode = False
sys.path.insert(0, "/site")
from vidrio.site.answering import answering
answering(${JSON.stringify(site.names)})`);
  const keepCompiled = () => {
    const made = python.runPython<Result<Uint8Array<ArrayBuffer>>>(
      'from vidrio.site.packing import compiled; compiled("/site")',
    );
    void keep(compiled, made.toJs());
    made.destroy();
  };
  const here = new Set<string>();
  return async ({ path, body }: Ask): Promise<[string, string | Uint8Array]> => {
    const model = (JSON.parse(body) as { model?: string }).model || site.default;
    const url = site.models[model];
    if (url && !here.has(model)) {
      let [got, size] = [0, site.sizes[url] ?? 0];
      loaded[model] ??= bytes(url, size, (count) => {
        got += count;
        scope.postMessage({ kind: "loading", done: got, total: size });
      });
      unpack(python, await loaded[model], `/site/vidrio/models/${model}`);
      delete loaded[model];
      here.add(model);
      size = 0;
    }
    if (path !== "translate" && numpy) {
      unpack(python, await numpy, "/site");
      numpy = undefined;
      if (!before) setTimeout(keepCompiled, CALM);
    }
    const told = answer(path, body);
    const found = told.toJs();
    told.destroy();
    return found;
  };
}

let answering: ReturnType<typeof start> | undefined;
addEventListener("message", async ({ data }: MessageEvent<Ask | { site: Site }>) => {
  if ("site" in data) {
    answering = start(data.site);
    await answering.then(
      () => scope.postMessage({ kind: "ready" }),
      () => undefined, // whoever asks hears why
    );
    return;
  }
  try {
    const [status, answer] = (await (await answering)?.(data)) ?? ["failed", "not started"];
    scope.postMessage(
      { kind: "answer", id: data.id, status, answer },
      typeof answer === "string" ? [] : [answer.buffer],
    );
  } catch (error) {
    scope.postMessage({ kind: "answer", id: data.id, status: "failed", answer: String(error) });
  }
});
