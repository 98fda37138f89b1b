/** A spreadsheet takes a cell that begins so for a formula, and partners choose some of these texts. */
const formula = /^[=+\-@\t\r]/;

/** One cell of a CSV line, RFC 4180. A text that a spreadsheet would run begins with an apostrophe. */
export function csvCell(value: string | number | null | undefined): string {
  if (typeof value === "number") return String(value);
  const text = formula.test(value ?? "") ? `'${value}` : (value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
