/** RFC 4180, with a header. A value that a spreadsheet would take for a formula gets an apostrophe in front. */
export function csvOf<Column extends string>(
  columns: readonly Column[],
  rows: readonly Partial<Record<Column, unknown>>[],
): string {
  const lines = rows.map((row) => columns.map((column) => cell(row[column])).join(","));
  return `${[columns.join(","), ...lines].join("\r\n")}\r\n`;
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = String(value);
  const safe = /^[=+@\t\r]|^-(?!\d)/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Has the browser save a text as a file. */
export function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
