/** Give the reader a file; nothing is sent anywhere. */
export function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** A matrix with what its rows and columns stand for, every digit of every number. */
export function saveCsv(
  name: string,
  rows: string[],
  columns: string[],
  value: (row: number, column: number) => number,
): void {
  const quoted = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = rows.map((row, y) => [quoted(row), ...columns.map((_, x) => String(value(y, x)))].join(","));
  const text = [["", ...columns.map(quoted)].join(","), ...lines, ""].join("\n");
  save(new Blob([text], { type: "text/csv" }), `${name}.csv`);
}
