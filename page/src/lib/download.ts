/** Offers a file for download. */
export function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Copies text to the clipboard and returns whether that succeeded. Over plain HTTP, only execCommand is available. */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard)
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

/** Saves a table as CSV, with numbers at full precision. */
export function saveTable(name: string, rows: (string | number)[][]): void {
  const quoted = (cell: string | number) =>
    typeof cell === "string" && /[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : String(cell);
  const text = rows.map((row) => `${row.map(quoted).join(",")}\n`).join("");
  save(new Blob([text], { type: "text/csv" }), `${name}.csv`);
}

export function saveMatrix(
  name: string,
  rows: string[],
  columns: string[],
  value: (row: number, column: number) => number,
): void {
  saveTable(name, [["", ...columns], ...rows.map((row, y) => [row, ...columns.map((_, x) => value(y, x))])]);
}
