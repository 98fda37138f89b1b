import type { CommandContext } from "./context.ts";

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

/** The rows of a list in columns, or that there are none. */
export function listed(rows: readonly (readonly string[])[]): string[] {
  return rows.length === 0 ? ["None."] : columns(rows);
}

/**
 * Columns as wide as their widest cell. A column that is empty in every row is left out, and the last is not padded.
 */
export function columns(rows: readonly (readonly string[])[], gap = "  "): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length);
  }
  return rows.map((row) =>
    row
      .flatMap((cell, at) => (widths[at] === 0 ? [] : [at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0)]))
      .join(gap)
      .trimEnd(),
  );
}
