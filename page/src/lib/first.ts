/** Answers requests from a precomputed run of the example sentence while Python is still loading. */

import type { Site } from "./site";

interface FirstRun {
  text: string;
  model: string;
  answers: { translate: unknown; machine: unknown; run: unknown; why: unknown[] };
  tensors: string[]; // the addresses of the precomputed tensors
}

/** Downloads and unpacks an archive: a header with each file's offset and size, followed by the concatenated files. */
async function unpacked(url: string): Promise<Record<string, ArrayBuffer>> {
  const answer = await fetch(url);
  if (!answer.ok || !answer.body) throw new Error(url);
  const pack = await new Response(answer.body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  const length = new DataView(pack).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(pack.slice(4, 4 + length))) as Record<string, [number, number]>;
  return Object.fromEntries(
    Object.entries(header).map(([name, [at, size]]) => [name, pack.slice(4 + length + at, 4 + length + at + size)]),
  );
}

/** Returns a function that answers requests about the precomputed run, and returns undefined for all other requests. */
export async function firstRun(site: Site): Promise<(path: string, body: object) => BodyInit | undefined> {
  const files = await unpacked(site.first);
  const first = JSON.parse(new TextDecoder().decode(files["answers.json"])) as FirstRun;
  return (path, body) => {
    const { text, model, sentence, changes, numbers, step, rival, word, addresses } = body as Record<string, unknown>;
    const other = text !== first.text || model !== first.model || sentence || (changes as unknown[]).length || numbers;
    if (other || rival || word) return undefined;
    if (path === "tensors" && (addresses as string[]).every((address) => first.tensors.includes(address)))
      return files.tensors;
    const answer = path === "why" ? first.answers.why[Number(step)] : first.answers[path as "run"];
    return answer ? JSON.stringify(answer) : undefined;
  };
}
