import { styleText } from "node:util";
import cliProgress from "cli-progress";
import type { CommandContext, Output } from "./context.ts";
import type { ExitCode } from "./failure.ts";

/** Makes a stranger's text printable: control and invisible characters are shown as their codes. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\u2028\u2029]/gu, (character) => {
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

export interface Style {
  good(text: string): string;
  bad(text: string): string;
  faint(text: string): string;
  strong(text: string): string;
}

const plain: Style = { good: same, bad: same, faint: same, strong: same };
const coloured: Style = {
  good: (text) => styleText("green", text),
  bad: (text) => styleText("red", text),
  faint: (text) => styleText("dim", text),
  strong: (text) => styleText("bold", text),
};

/** Colours on a terminal, unless NO_COLOR asks for none. */
export function styleFor({ isTTY = false }: Output, env: CommandContext["env"]): Style {
  const refused = env["NO_COLOR"] !== undefined && env["NO_COLOR"] !== "";
  return isTTY && !refused ? coloured : plain;
}

function same(text: string): string {
  return text;
}

export type JsonOption = {
  readonly json?: boolean;
};

/** What a command found or did. */
export interface Result {
  /** The document for programs. */
  readonly value: unknown;
  /** The same for a person. */
  readonly lines: readonly string[];
  /** Absent: success. */
  readonly code?: ExitCode;
}

/** Writes what was asked for: one JSON document with --json, else lines for a person. */
export function print(
  { stdout }: Pick<CommandContext, "stdout">,
  { json }: JsonOption,
  { value, lines }: Result,
): void {
  stdout.write(json ? `${JSON.stringify(value, null, 2)}\n` : lines.map((line) => `${line}\n`).join(""));
}

/** A column of a list: its header, and the cell of an item. */
export type TableColumn<Item> = readonly [header: string, cell: (item: Item) => string | number | null | undefined];

/** A record as the service answers it. */
export type Shown = Readonly<Record<string, unknown>> & { readonly id: string };

/** Columns of fields, each headed by its name in words. */
export function fieldColumns<Item>(...names: readonly (keyof Item & string)[]): TableColumn<Item>[] {
  return names.map((name) => [name.replaceAll(/[A-Z]/g, " $&"), (one) => textOf(one[name])]);
}

/** A value of JSON in a line. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return printable(typeof value === "string" ? value : JSON.stringify(value));
}

/** The result of a command that lists items. */
export function itemsOf<Item>(items: readonly Item[], all: readonly TableColumn<Item>[]): Result {
  return { value: { items }, lines: listed(items, all) };
}

/** A record, a value on a line. */
export function recordLines(record: object): string[] {
  return columns(Object.entries(record).map(([name, value]) => [name, textOf(value)]));
}

/** A list in columns below their headers, or that there is nothing. A column that is empty in every row is left out. */
export function listed<Item>(items: readonly Item[], all: readonly TableColumn<Item>[]): string[] {
  return items.length === 0
    ? ["None."]
    : new Table(all.filter((one) => items.some((item) => cellOf(one, item) !== ""))).lines(items);
}

/** A list that grows: the headers come once, and later rows are at least as wide as those before. */
export class Table<Item> {
  readonly #columns: readonly TableColumn<Item>[];
  readonly #widths: number[];
  #isBegun = false;

  constructor(all: readonly TableColumn<Item>[]) {
    this.#columns = all;
    this.#widths = all.map(() => 0);
  }

  lines(items: readonly Item[]): string[] {
    const headers = this.#isBegun ? [] : [this.#columns.map(([header]) => header.toUpperCase())];
    this.#isBegun = true;
    return columns([...headers, ...items.map((item) => this.#columns.map((one) => cellOf(one, item)))], this.#widths);
  }
}

function cellOf<Item>([, cell]: TableColumn<Item>, item: Item): string {
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

export interface Progress {
  /** @param total where it is known only on the way */
  update(done: number, total?: number): void;
  /** Removes the bar; the caller reports the result. */
  stop(): void;
}

const silent: Progress = { update: () => undefined, stop: () => undefined };
/** Faster work needs no bar: it would only flash. */
const shownAfterMs = 400;

/** A bar on stderr, or a count if the total is unknown; nothing if stderr is not a terminal. */
export function progress(
  { stderr, nowMs }: Pick<CommandContext, "stderr" | "nowMs">,
  what: string,
  initialTotal?: number,
): Progress {
  if (stderr.isTTY !== true) return silent;
  const format = initialTotal === undefined ? `${what}  {value}` : `${what}  {bar}  {value}/{total}  {eta_formatted}`;
  // Ctrl-C may end us before stop(): a hidden cursor would stay hidden.
  const options = { format, stream: stderr, clearOnComplete: true, hideCursor: false, linewrap: true };
  const startedMs = nowMs();
  let bar: cliProgress.SingleBar | undefined;
  return {
    update(done, total = initialTotal ?? 0) {
      if (bar === undefined && nowMs() - startedMs >= shownAfterMs) {
        bar = new cliProgress.SingleBar(options, cliProgress.Presets.shades_classic);
        bar.start(total, done);
      }
      bar?.setTotal(total);
      bar?.update(done);
    },
    stop: () => bar?.stop(),
  };
}

/** Shows the progress of some work until it has ended. */
export async function showing<Value>(
  context: Pick<CommandContext, "stderr" | "nowMs">,
  what: string,
  total: number | undefined,
  work: (onProgress: Progress["update"]) => Promise<Value>,
): Promise<Value> {
  const bar = progress(context, what, total);
  try {
    return await work(bar.update);
  } finally {
    bar.stop();
  }
}
