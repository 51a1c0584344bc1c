import type { SearchNode } from "./types";

export interface Placed {
  node: SearchNode;
  place: number; // in the list of nodes
  row: number;
  parentRow: number; // -1 for those that follow the start
  best: boolean; // on the way to the hypothesis that was taken
}

/** Rows for a search tree: a hypothesis goes on in its parent's row as long as it can, others open new ones. */
export function layOut(nodes: SearchNode[], best: number, all: boolean): { placed: Placed[]; rows: number } {
  const way = new Set<number>();
  for (let place = best; place >= 0; place = nodes[place]?.parent ?? -1) way.add(place);
  const alive = nodes.map(({ fate }, place) => fate !== "dropped" || way.has(place));
  const children = new Map<number, number[]>();
  nodes.forEach((node, place) => {
    if (all || alive[place]) children.set(node.parent, [...(children.get(node.parent) ?? []), place]);
  });
  const placed: Placed[] = [];
  let rows = 0;
  const walk = (parent: number, parentRow: number) => {
    const following = children.get(parent) ?? [];
    const rank = (place: number) => (way.has(place) ? 0 : alive[place] ? 1 : 2);
    following.sort((a, b) => rank(a) - rank(b) || (nodes[a]?.rank ?? 0) - (nodes[b]?.rank ?? 0));
    following.forEach((place, i) => {
      const node = nodes[place];
      if (!node) return;
      const row = i === 0 && parentRow >= 0 ? parentRow : rows++;
      placed.push({ node, place, row, parentRow, best: way.has(place) });
      walk(place, row);
    });
  };
  walk(-1, -1);
  return { placed, rows };
}
