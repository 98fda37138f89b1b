import { setImmediate as nextTurn } from "node:timers/promises";
import type { ClearingColumn, ClearingProfile } from "../acquirer/iso8583/profile/clearing.ts";
import { type Cells, type ClearingLayout, type ClearingLine, LineReader, UnreadableClearing } from "./line.ts";

/** No record is longer. */
const lineCharactersMax = 64 * 1024;
/** Text that is parsed in one turn of the event loop: measured, 64 KiB of CSV take 4 to 8 ms. */
const pieceCharacters = 32 * 1024;
const columnsMax = 500;

/**
 * Reads a clearing file as a stream, a piece for each turn of the event loop.
 *
 * @throws UnreadableClearing naming line and column
 */
export async function* readClearing(
  bytes: AsyncIterable<Uint8Array>,
  layout: ClearingLayout,
): AsyncGenerator<readonly ClearingLine[]> {
  const reader = new LineReader(layout);
  const pieces = textOf(bytes, layout.section.encoding);
  const records =
    layout.section.format === "csv" ? csvRecords(pieces, layout.section) : fixedLines(pieces, layout.section);
  for await (const page of records) {
    const lines = page.flatMap(({ line, cells }) => reader.read(line, cells) ?? []);
    if (lines.length > 0) yield lines;
    await nextTurn();
  }
}

interface FileRecord {
  readonly line: number;
  readonly cells: Cells;
}

async function* textOf(bytes: AsyncIterable<Uint8Array>, encoding: ClearingProfile["encoding"]) {
  // A decoder that replaces what is not UTF-8 would change an id unnoticed.
  const decoder = new TextDecoder(encoding, { fatal: true });
  let line = 1;
  const decoded = (chunk?: Uint8Array) => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    } catch {
      throw new UnreadableClearing(line, undefined, "from here on the file is not UTF-8");
    }
  };
  for await (const chunk of bytes) {
    const text = decoded(chunk);
    for (let at = 0; at < text.length; at += pieceCharacters) yield text.slice(at, at + pieceCharacters);
    line += chunk.reduce((count, byte) => (byte === 10 ? count + 1 : count), 0);
  }
  yield decoded();
}

async function* csvRecords(pieces: AsyncIterable<string>, section: ClearingProfile): AsyncGenerator<FileRecord[]> {
  const { parse } = await import("csv-parse");
  const found: { readonly record: readonly string[]; readonly line: number }[] = [];
  const parser = parse({
    delimiter: section.delimiter,
    record_delimiter: ["\r\n", "\n"],
    skip_empty_lines: true,
    relax_column_count: true,
    from_line: section.skipLines + 1,
    max_record_size: lineCharactersMax,
    // Read as a stream, it would drop the records before an error, as many as happen to be buffered.
    on_record: (record: readonly string[], { lines: line }) => {
      found.push({ record, line });
      return null;
    },
  });
  // Each error also comes by the callback of what was written.
  parser.on("error", () => undefined).resume();
  let at: ReadonlyMap<ClearingColumn, number> | undefined = section.header ? undefined : numbersOf(section);
  for await (const text of piecesAndEnd(pieces)) {
    const { promise, resolve } = Promise.withResolvers<Error | null | undefined>();
    if (text === undefined) parser.end(resolve);
    else parser.write(text, resolve);
    const error = await promise;
    const page: FileRecord[] = [];
    for (const { record, line } of found.splice(0)) {
      if (at === undefined) at = readHeader(record, line, section);
      else {
        const places = at;
        page.push({ line, cells: (column) => record[places.get(column) ?? columnsMax] });
      }
    }
    if (page.length > 0) yield page;
    if (error) {
      // The parser's own message quotes the record, and so perhaps a card.
      const { code = "" } = error as Error & { code?: string };
      throw new UnreadableClearing(parser.info.lines, undefined, csvReasons[code] ?? "it cannot be read as CSV");
    }
  }
  if (at === undefined)
    throw new UnreadableClearing(1, undefined, "the file ends before the line that names the columns");
}

const csvReasons: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: "a quote is not closed",
  CSV_INVALID_CLOSING_QUOTE: "a character follows a closing quote",
  INVALID_OPENING_QUOTE: "a quote stands inside a cell that has none around it",
  CSV_MAX_RECORD_SIZE: `it has over ${lineCharactersMax} characters`,
};

function numbersOf({ columns }: ClearingProfile): ReadonlyMap<ClearingColumn, number> {
  const entries = Object.entries(columns) as [ClearingColumn, unknown][];
  return new Map(entries.flatMap(([name, place]) => (typeof place === "number" ? [[name, place - 1]] : [])));
}

function readHeader(record: readonly string[], line: number, section: ClearingProfile) {
  const names = record.map((name) => name.replace(/^\uFEFF/, "").trim());
  const at = new Map(numbersOf(section));
  for (const [column, place] of Object.entries(section.columns) as [ClearingColumn, unknown][]) {
    if (typeof place !== "string") continue;
    const index = names.indexOf(place);
    if (index < 0) throw new UnreadableClearing(line, column, `the line names no column "${place}"`);
    at.set(column, index);
  }
  return at;
}

async function* fixedLines(pieces: AsyncIterable<string>, section: ClearingProfile): AsyncGenerator<FileRecord[]> {
  const from = section.skipLines + (section.header ? 1 : 0);
  let line = 0;
  let rest = "";
  for await (const text of piecesAndEnd(pieces)) {
    const lines = (rest + (text ?? "")).split("\n");
    rest = text === undefined ? "" : (lines.pop() ?? "");
    if (rest.length > lineCharactersMax) {
      throw new UnreadableClearing(line + 1, undefined, `it has over ${lineCharactersMax} characters`);
    }
    const page: FileRecord[] = [];
    for (const ended of lines) {
      line += 1;
      const record = ended.replace(/\r$/, "");
      if (line > from && record.trim() !== "") page.push({ line, cells: (column) => cut(record, section, column) });
    }
    yield page;
  }
}

function cut(record: string, { columns }: ClearingProfile, column: ClearingColumn): string | undefined {
  const place = columns[column];
  if (typeof place !== "object" || record.length < place.from) return undefined;
  return record.slice(place.from - 1, place.from - 1 + place.length);
}

async function* piecesAndEnd<Piece>(pieces: AsyncIterable<Piece>): AsyncGenerator<Piece | undefined> {
  yield* pieces;
  yield undefined;
}
