import { type OutputStyle, paint } from "./output-style.ts";
import { columnsOf, cut, flow, padEnd, printable } from "./output-text.ts";

export const indent = "  ";
const gap = 2;
/** In a narrower terminal so few values are short that two columns only disturb the order. */
const twoColumnsFrom = 72;

/**
 * The fields of an IPN: long values on lines of their own, then the short ones in two columns, read downwards, then the
 * names of the empty ones.
 */
export function fieldLines(fields: readonly (readonly [name: string, value: string])[], style: OutputStyle): string[] {
  const columns = style.columns - indent.length;
  const filled = fields.filter(([, value]) => value !== "").map(([name, value]) => [name, printable(value)] as const);
  const empty = fields.filter(([, value]) => value === "").map(([name]) => name);
  const nameColumns = Math.max(0, ...filled.map(([name]) => name.length)) + gap;
  const cellColumns = Math.floor((columns - gap) / 2);
  const isShort = (value: string) => style.columns >= twoColumnsFrom && nameColumns + columnsOf(value) <= cellColumns;

  const cell = (name: string, value: string, width: number) => {
    const shown = padEnd(cut(value, width - nameColumns), width - nameColumns);
    return paint(style, "faint", padEnd(name, nameColumns)) + shown;
  };
  const long = filled
    .filter(([, value]) => !isShort(value))
    .map(([name, value]) => cell(name, value, columns).trimEnd());
  const short = filled.filter(([, value]) => isShort(value));
  const rows = Math.ceil(short.length / 2);
  const grid = Array.from({ length: rows }, (_, row) => {
    const [left, right] = [short[row], short[row + rows]];
    const cells = [left, right].flatMap((field) => (field === undefined ? [] : [cell(...field, cellColumns)]));
    return cells.join(" ".repeat(gap)).trimEnd();
  });
  return [...long, ...grid, ...emptyLines(empty, columns, style)].map((line) => indent + line);
}

function emptyLines(names: readonly string[], columns: number, style: OutputStyle): string[] {
  if (names.length === 0) return [];
  const listed = names.map((name, at) => (at === names.length - 1 ? name : `${name},`));
  const lines = flow(listed, " ", columns - "empty  ".length);
  return lines.map((line, at) => paint(style, "faint", (at === 0 ? "empty  " : "       ") + line));
}
