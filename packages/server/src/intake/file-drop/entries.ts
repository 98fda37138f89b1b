import { createReadStream } from "node:fs";
import type { Parser } from "csv-parse";
import { completionFields } from "../../commands/request.ts";
import { badFields, ServiceError } from "../../errors.ts";
import { readJson } from "../../input/json.ts";
import { safeFieldName } from "../../safe-field-name.ts";
import type { GivenItem } from "../items.ts";

/** The largest line: a settlement of 50,000 entries has 5 MB. */
const lineBytesMax = 8 * 1024 * 1024;

/** A line of a file, as an item. */
export interface Entry extends GivenItem {
  /** From 1; of a CSV record that spans lines, the last. */
  readonly line: number;
}

/** The rest of a file cannot be read. The message is for people, and quotes nothing of the file but column names. */
export class UnreadableFile extends Error {}

/** The endings of the names of files that are read; others are left alone. */
export const readers = { ".jsonl": jsonLines, ".csv": csvRecords } as const;

/** One JSON object on each line. An empty line is skipped. @throws UnreadableFile for a line that has no end */
async function* jsonLines(path: string): AsyncGenerator<Entry> {
  let line = 0;
  for await (const bytes of linesOf(path)) {
    line += 1;
    const text = line === 1 ? withoutBom(bytes) : bytes;
    if (text.toString("latin1").trim() !== "") yield { line, ...jsonItem(text) };
  }
}

function jsonItem(bytes: Buffer): GivenItem {
  try {
    return { item: readJson(bytes) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const unreadable = new ServiceError(error.code, error.message.replace("The body", "The line"));
    return { item: bytes.toString("utf8"), unreadable };
  }
}

async function* linesOf(path: string): AsyncGenerator<Buffer> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      yield Buffer.concat([...rest, chunk.subarray(from, end)]);
      [rest, restBytes] = [[], 0];
      from = end + 1;
    }
    rest.push(chunk.subarray(from));
    restBytes += chunk.length - from;
    if (restBytes > lineBytesMax) throw new UnreadableFile(`A line has over ${lineBytesMax} bytes.`);
  }
  if (restBytes > 0) yield Buffer.concat(rest);
}

const lineFeed = 0x0a;
const bom = Buffer.from("\uFEFF");

function withoutBom(bytes: Buffer): Buffer {
  return bytes.subarray(0, bom.length).equals(bom) ? bytes.subarray(bom.length) : bytes;
}

/**
 * RFC 4180, with a first line that names the columns as the fields are called. An empty cell is a field that is left
 * out; `settlementList` is a list in JSON.
 *
 * @throws UnreadableFile if the header is wrong, or from a record on that has no end
 */
async function* csvRecords(path: string): AsyncGenerator<Entry> {
  const { parse } = await import("csv-parse");
  const found: { readonly record: readonly string[]; readonly line: number }[] = [];
  const parser = parse({
    record_delimiter: ["\r\n", "\n"],
    skip_empty_lines: true,
    relax_column_count: true,
    max_record_size: lineBytesMax,
    // Read as a stream, it would drop the records before an error, as many as happen to be buffered.
    on_record: (record: readonly string[], { lines: line }) => {
      found.push({ record, line });
      return null;
    },
  });
  // Each error also comes by the callback of what was written.
  parser.on("error", () => undefined).resume();
  let header: readonly string[] | undefined;
  for await (const text of piecesAndEnd(utf8Of(path))) {
    const { promise, resolve } = Promise.withResolvers<Error | null | undefined>();
    if (text === undefined) parser.end(resolve);
    else parser.write(text, resolve);
    const error = await promise;
    for (const { record, line } of found.splice(0)) {
      if (header === undefined) header = readHeader(record);
      else yield { line, ...csvItem(record, header) };
    }
    if (error) throw isOfParser(error) ? new UnreadableFile(reasonOf(error, parser)) : error;
  }
  if (header === undefined) throw new UnreadableFile("The file is empty: its first line names the columns.");
}

async function* piecesAndEnd<Piece>(pieces: AsyncIterable<Piece>): AsyncGenerator<Piece | undefined> {
  yield* pieces;
  yield undefined;
}

/** A decoder that replaces what is not UTF-8 would change a payment unnoticed. */
async function* utf8Of(path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    for await (const chunk of createReadStream(path)) yield decoder.decode(chunk, { stream: true });
    yield decoder.decode();
  } catch (error) {
    throw error instanceof TypeError ? new UnreadableFile("The file is not UTF-8.") : error;
  }
}

const columns: ReadonlySet<string> = new Set(
  Object.values(completionFields).flatMap((fields) => fields.map(({ name }) => name)),
);

function readHeader(record: readonly string[]): readonly string[] {
  const names = record.map((name) => name.trim());
  const unknown = names.filter((name) => !columns.has(name)).map(safeFieldName);
  if (unknown.length > 0)
    throw new UnreadableFile(`The first line names columns that are no fields: ${unknown.join(", ")}.`);
  if (new Set(names).size < names.length) throw new UnreadableFile("The first line names a column twice.");
  return names;
}

function csvItem(record: readonly string[], header: readonly string[]): GivenItem {
  const cells = record.map((value, index): [string, string] => [header[index] ?? `column ${index + 1}`, value]);
  const item = Object.fromEntries(
    cells.filter(([, value]) => value !== "").map(([name, value]) => [name, cellValue(name, value)]),
  );
  if (record.length === header.length) return { item };
  const message = `The line has ${record.length} cells, and the first line ${header.length}.`;
  return { item, unreadable: badFields([{ field: "", code: "invalid_value", message }]) };
}

function cellValue(name: string, cell: string): unknown {
  if (name !== "settlementList") return cell;
  try {
    return readJson(Buffer.from(cell));
  } catch {
    // As a text it is refused for its type.
    return cell;
  }
}

function isOfParser(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && "code" in error && /^CSV_|^INVALID_OPENING_QUOTE$/.test(String(error.code));
}

/** The parser's own message quotes the record, and so perhaps a card. */
function reasonOf({ code }: { readonly code: string }, { info }: Parser): string {
  const reason = csvReasons[code] ?? "it is not CSV";
  return `It cannot be read as CSV from line ${info.lines} on: ${reason}.`;
}

const csvReasons: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: "a quote is not closed",
  CSV_INVALID_CLOSING_QUOTE: "a character follows a closing quote",
  INVALID_OPENING_QUOTE: "a quote stands inside a cell that has none around it",
  CSV_MAX_RECORD_SIZE: `a record has over ${lineBytesMax} bytes`,
};
