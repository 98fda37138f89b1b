import type { CommandContext } from "./context.ts";
import { printable } from "./printable.ts";

export interface JsonOption {
  readonly json?: boolean;
}

/** Writes what was asked for: one JSON document with --json, else lines for a person. */
export function print(
  { stdout }: Pick<CommandContext, "stdout">,
  { json }: JsonOption,
  value: unknown,
  lines: readonly string[],
): void {
  stdout.write(json ? `${JSON.stringify(value, null, 2)}\n` : lines.map((line) => `${line}\n`).join(""));
}

/** A column of a list: its header, and the cell of an item. */
export type Column<Item> = readonly [header: string, cell: (item: Item) => string | number | null | undefined];

/** A record as the service answers it. */
export type Shown = Readonly<Record<string, unknown>> & { readonly id: string };

/** Columns of a record's fields, each headed by its name in words. */
export function fieldColumns(...names: readonly string[]): Column<Shown>[] {
  return names.map((name) => [name.replaceAll(/[A-Z]/g, " $&"), (one) => textOf(one[name])]);
}

/** A value of JSON in a line. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return printable(typeof value === "string" ? value : JSON.stringify(value));
}

/** A list in columns below their headers, or that there is nothing. A column that is empty in every row is left out. */
export function listed<Item>(items: readonly Item[], all: readonly Column<Item>[]): string[] {
  return items.length === 0
    ? ["None."]
    : new Table(all.filter((one) => items.some((item) => cellOf(one, item) !== ""))).lines(items);
}

/** A list that grows: the headers come once, and later rows are at least as wide as those before. */
export class Table<Item> {
  readonly #columns: readonly Column<Item>[];
  readonly #widths: number[];
  #isBegun = false;

  constructor(all: readonly Column<Item>[]) {
    this.#columns = all;
    this.#widths = all.map(() => 0);
  }

  lines(items: readonly Item[]): string[] {
    const headers = this.#isBegun ? [] : [this.#columns.map(([header]) => header.toUpperCase())];
    this.#isBegun = true;
    return columns([...headers, ...items.map((item) => this.#columns.map((one) => cellOf(one, item)))], this.#widths);
  }
}

function cellOf<Item>([, cell]: Column<Item>, item: Item): string {
  return printable(String(cell(item) ?? ""));
}

/**
 * Columns as wide as their widest cell. A column that is empty in every row is left out, and the last is not padded.
 *
 * @param widths at least; made wider for the next call
 */
export function columns(rows: readonly (readonly string[])[], widths: number[] = []): string[] {
  for (const row of rows) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length);
  }
  return rows.map((row) =>
    row
      .flatMap((cell, at) => (widths[at] === 0 ? [] : [at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0)]))
      .join("  ")
      .trimEnd(),
  );
}
