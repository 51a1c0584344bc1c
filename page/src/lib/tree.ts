import type { SearchNode } from "./types";

interface Placed {
  node: SearchNode;
  index: number; // the index in the list of nodes
  row: number;
  parentRow: number; // -1 for a root
  best: boolean; // whether the node belongs to the chosen hypothesis
}

/** Lays out a search tree. The best continuation stays in its parent's row; all others get new rows. */
export function layOut(nodes: SearchNode[], best: number, all: boolean): { placed: Placed[]; rows: number } {
  const path = new Set<number>();
  for (let index = best; index >= 0; index = nodes[index]?.parent ?? -1) path.add(index);
  const alive = nodes.map(({ fate }, index) => fate !== "dropped" || path.has(index));
  const children = new Map<number, number[]>();
  nodes.forEach((node, index) => {
    if (all || alive[index]) children.set(node.parent, [...(children.get(node.parent) ?? []), index]);
  });
  const placed: Placed[] = [];
  let rows = 0;
  const walk = (parent: number, parentRow: number) => {
    const following = children.get(parent) ?? [];
    const rank = (index: number) => (path.has(index) ? 0 : alive[index] ? 1 : 2);
    following.sort((a, b) => rank(a) - rank(b) || (nodes[a]?.rank ?? 0) - (nodes[b]?.rank ?? 0));
    following.forEach((index, i) => {
      const node = nodes[index];
      if (!node) return;
      const row = i === 0 && parentRow >= 0 ? parentRow : rows++;
      placed.push({ node, index, row, parentRow, best: path.has(index) });
      walk(index, row);
    });
  };
  walk(-1, -1);
  return { placed, rows };
}
