export type Piece = [kind: "same" | "deleted" | "inserted", word: string];

/** Compares two texts word by word, using their longest common subsequence. */
export function wordDiff(before: string, after: string): Piece[] {
  const [a, b] = [before.split(/\s+/), after.split(/\s+/)];
  const lengths = Array.from({ length: a.length + 1 }, () => new Int32Array(b.length + 1));
  const common = (i: number, j: number) => lengths[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) {
      const row = lengths[i];
      if (row) row[j] = a[i] === b[j] ? common(i + 1, j + 1) + 1 : Math.max(common(i + 1, j), common(i, j + 1));
    }
  const pieces: Piece[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      pieces.push(["same", a[i++] ?? ""]);
      j++;
    } else if (j >= b.length || (i < a.length && common(i + 1, j) >= common(i, j + 1)))
      pieces.push(["deleted", a[i++] ?? ""]);
    else pieces.push(["inserted", b[j++] ?? ""]);
  }
  return pieces;
}
