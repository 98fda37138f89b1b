import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { extname } from "node:path";
import { cardNumberProblem } from "../../commands/card-number.ts";
import { readJson } from "../../input/json.ts";
import { isSensitive } from "../../sensitive-keys.ts";

/** Longer ones are not read, and may hold anything. */
const lineBytesMax = 8 * 1024 * 1024;
const cut = "(cut out: it held what looks like card data)";
const lineFeed = 0x0a;
/** A cell of a CSV line, in quotes or not. */
const cell = /"(?:[^"]|"")*"|[^,\r]+/g;

/**
 * Writes a copy of a file of completions, without the values that hold card data, that only the service's account may
 * read. Lines without any are copied byte for byte. The copy is durable when this resolves.
 *
 * @returns whether a value was cut out; if not, the copy is worthless
 */
export async function copyWithoutCardData(from: string, to: string): Promise<boolean> {
  let header: readonly string[] | undefined;
  let isCut = false;
  const file = await open(to, "w", 0o600);
  try {
    // An earlier process may have left one with another mode.
    await file.chmod(0o600);
    for await (const bytes of linesOf(from)) {
      const line = bytes?.toString("utf8");
      const isCsv = extname(from) === ".csv";
      if (isCsv) header ??= (line ?? "").split(",").map((name) => name.replaceAll(/["\uFEFF]/g, "").trim());
      const kept = line === undefined ? cut : isCsv ? csvLine(line, header ?? []) : jsonLine(line);
      if (bytes !== undefined && kept === line) await file.appendFile(bytes);
      else {
        isCut = true;
        await file.appendFile(`${kept.trimEnd()}\n`);
      }
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return isCut;
}

/** Each with its line end; undefined for one that is too long. */
async function* linesOf(path: string): AsyncGenerator<Buffer | undefined> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      const isLong = restBytes + end - from > lineBytesMax;
      yield isLong ? undefined : Buffer.concat([...rest, chunk.subarray(from, end + 1)]);
      [rest, restBytes] = [[], 0];
      from = end + 1;
    }
    restBytes += chunk.length - from;
    if (restBytes <= lineBytesMax) rest.push(chunk.subarray(from));
    else rest = [];
  }
  if (restBytes > 0) yield restBytes > lineBytesMax ? undefined : Buffer.concat(rest);
}

function jsonLine(line: string): string {
  let item: unknown;
  try {
    item = readJson(Buffer.from(line.replace(/^\uFEFF/, "")));
  } catch {
    return holdsCardData("", line) ? cut : line;
  }
  const kept = withoutCardData("", item);
  return kept === item ? line : JSON.stringify(kept);
}

/** The same value, if nothing was cut out of it. */
function withoutCardData(name: string, value: unknown): unknown {
  if (typeof value === "string" || typeof value === "number") return holdsCardData(name, value) ? cut : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value;
    const kept = items.map((item) => withoutCardData(name, item));
    return kept.every((item, at) => item === items[at]) ? value : kept;
  }
  const entries = Object.entries(value);
  const kept = entries.map(
    ([key, inner]) => [holdsCardData("", key) ? cut : key, withoutCardData(key, inner)] as const,
  );
  return kept.every(([key, inner], at) => key === entries[at]?.[0] && inner === entries[at]?.[1])
    ? value
    : Object.fromEntries(kept);
}

function csvLine(line: string, header: readonly string[]): string {
  let column = 0;
  let end = 0;
  return line.replace(cell, (text, at: number) => {
    column += commasIn(line.slice(end, at));
    end = at + text.length;
    const quoted = text.startsWith('"');
    return holdsCardData(header[column] ?? "", quoted ? text.slice(1, -1).replaceAll('""', '"') : text) ? cut : text;
  });
}

function commasIn(text: string): number {
  return text.split(",").length - 1;
}

function holdsCardData(name: string, value: string | number): boolean {
  return isSensitive(name, value) || cardNumberProblem(name, String(value)) !== undefined;
}
