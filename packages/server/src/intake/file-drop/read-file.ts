import { createReadStream } from "node:fs";
import { completionFields } from "../../commands/reports/completion.ts";
import { badFields } from "../../errors.ts";
import { safeFieldName } from "../../guards/safe-text.ts";
import { readJson } from "../../input/json.ts";
import { linesOf } from "../card-data.ts";
import { csvRecords, textOf, UnreadableText } from "../csv.ts";
import { type GivenItem, jsonItem } from "../report-items.ts";

/** The largest line: a settlement of 50,000 entries has 5 MB. */
export const lineBytesMax = 8 * 1024 * 1024;

/** A line of a file, as an item. */
export interface Entry extends GivenItem {
  /** From 1; of a CSV record that spans lines, the last. */
  readonly line: number;
}

/** The rest of a file cannot be read. The message is for people, and quotes nothing of the file but column names. */
export class UnreadableFile extends Error {}

/** The endings of the names of files that are read; others are left alone. */
export const readers = { ".jsonl": jsonLines, ".csv": csvEntries } as const;

/** One JSON object on each line. An empty line is skipped. @throws UnreadableFile for a line that has no end */
async function* jsonLines(path: string): AsyncGenerator<Entry> {
  let line = 0;
  for await (const bytes of linesOf(path, lineBytesMax)) {
    line += 1;
    if (bytes === undefined) throw new UnreadableFile(`A line has over ${lineBytesMax} bytes.`);
    const whole = bytes.at(-1) === lineFeed ? bytes.subarray(0, -1) : bytes;
    const text = line === 1 ? withoutBom(whole) : whole;
    if (text.toString("latin1").trim() !== "") yield { line, ...jsonItem(text, "The line") };
  }
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
async function* csvEntries(path: string): AsyncGenerator<Entry> {
  let header: readonly string[] | undefined;
  try {
    for await (const page of csvRecords(textOf(createReadStream(path)), { charactersMax: lineBytesMax })) {
      for (const { cells, line } of page) {
        if (header === undefined) header = readHeader(cells);
        else yield { line, ...csvItem(cells, header) };
      }
    }
  } catch (error) {
    if (!(error instanceof UnreadableText)) throw error;
    throw new UnreadableFile(`It cannot be read as CSV from line ${error.line} on: ${error.message}.`);
  }
  if (header === undefined) throw new UnreadableFile("The file is empty: its first line names the columns.");
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
