import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { cardNumberProblem } from "../commands/requests/rules.ts";
import { holdsCardNumber, isCardNumber, maskCardNumbers } from "../guards/card-number.ts";
import { isSensitive, namesSensitive, sensitiveShapes } from "../guards/sensitive-keys.ts";
import { readJson } from "../input/json.ts";

/** Yields what is kept of a line, in parts that each take a moment. */
export type LineCutter = (line: string) => Iterable<string>;

interface CopyOptions {
  readonly cutter: LineCutter;
  /** Longer lines are left out: they are not read, and may hold anything. */
  readonly lineBytesMax: number;
  readonly encoding?: "utf8" | "latin1";
}

interface Copied {
  /** Whether a value was cut out; if not, the copy equals the file. */
  readonly isCut: boolean;
  /** Of the file, in hexadecimal. */
  readonly sha256: string;
}

const cut = "(cut out: it held what looks like card data)";
const lineFeed = 0x0a;
/** The event loop serves others after so long. */
const turnMs = 8;
const writeBytes = 256 * 1024;

/**
 * Writes a copy of a file without the values that hold card data, that only the service's account may read. Lines
 * without any are copied byte for byte. The copy is durable when this resolves.
 */
export async function copyWithoutCardData(
  from: string,
  to: string,
  { cutter, lineBytesMax, encoding = "utf8" }: CopyOptions,
): Promise<Copied> {
  const sha256 = createHash("sha256");
  const file = await open(to, "w", 0o600);
  let isCut = false;
  let unwritten: Buffer[] = [];
  let unwrittenBytes = 0;
  let turnEndMs = performance.now() + turnMs;
  const flush = async () => {
    await file.appendFile(Buffer.concat(unwritten));
    [unwritten, unwrittenBytes] = [[], 0];
  };
  try {
    // An earlier process may have left one with another mode.
    await file.chmod(0o600);
    for await (const bytes of linesOf(from, lineBytesMax, (chunk) => sha256.update(chunk))) {
      const line = bytes?.toString(encoding);
      let kept = line === undefined ? cut : "";
      for (const part of line === undefined ? [] : cutter(line)) {
        kept += part;
        if (performance.now() < turnEndMs) continue;
        await nextTurn();
        turnEndMs = performance.now() + turnMs;
      }
      const isWhole = bytes !== undefined && kept === line;
      const written = isWhole ? bytes : Buffer.from(`${kept.trimEnd()}\n`, encoding);
      isCut ||= !isWhole;
      unwritten.push(written);
      unwrittenBytes += written.length;
      if (unwrittenBytes >= writeBytes) await flush();
    }
    await flush();
    await file.sync();
  } finally {
    await file.close();
  }
  return { isCut, sha256: sha256.digest("hex") };
}

/** The lines of a file, each with its end; undefined for one that is too long, which is never kept whole. */
export async function* linesOf(
  path: string,
  lineBytesMax: number,
  onChunk: (chunk: Buffer) => unknown = () => undefined,
): AsyncGenerator<Buffer | undefined> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    onChunk(chunk);
    let from = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      const isLong = restBytes + end - from > lineBytesMax;
      const last = chunk.subarray(from, end + 1);
      yield isLong ? undefined : rest.length === 0 ? last : Buffer.concat([...rest, last]);
      [rest, restBytes] = [[], 0];
      from = end + 1;
    }
    restBytes += chunk.length - from;
    if (restBytes <= lineBytesMax) rest.push(chunk.subarray(from));
    else rest = [];
  }
  if (restBytes > 0) yield restBytes > lineBytesMax ? undefined : Buffer.concat(rest);
}

/** Cuts the values of a report in JSON, at any depth. */
export function* jsonCutter(line: string): Generator<string> {
  let item: unknown;
  try {
    item = readJson(Buffer.from(line.replace(/^\uFEFF/, "")));
  } catch {
    return yield withoutCardValue("", line);
  }
  const kept = withoutCardData("", item);
  yield kept === item ? line : JSON.stringify(kept);
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
  const kept = entries.map(([key, inner]) => [withoutCardValue("", key), withoutCardData(key, inner)] as const);
  return kept.every(([key, inner], at) => key === entries[at]?.[0] && inner === entries[at]?.[1])
    ? value
    : Object.fromEntries(kept);
}

/** A value of a report as it is kept. */
export function withoutCardValue(name: string, value: string): string {
  return holdsCardData(name, value) ? cut : value;
}

function holdsCardData(name: string, value: string | number): boolean {
  return isSensitive(name, value) || cardNumberProblem(name, String(value)) !== undefined;
}

const digitsOnly = /^\d*$/;

/**
 * The values of a column of another's file as they are kept: the first six and the last four digits of a card number
 * stay. Most are digits, which need no search for what may hide a number.
 */
export function withMaskedCards(name: string): (value: string) => string {
  const shapes = sensitiveShapes(name);
  return (value) => {
    if (shapes.some((shape) => shape.test(value))) return cut;
    if (!digitsOnly.test(value)) return holdsCardNumber(value) ? maskCardNumbers(Buffer.from(value)).toString() : value;
    if (!isCardNumber(value)) return value;
    const hidden = "*".repeat(value.length - digitsShownFirst - digitsShownLast);
    return value.slice(0, digitsShownFirst) + hidden + value.slice(-digitsShownLast);
  };
}

interface CsvCells {
  readonly delimiter: string;
  /** The line that names the columns, from 1; 0: none. */
  readonly headerLine: number;
  /** What is kept of the cells of a column. */
  readonly keepOf: (column: string) => (value: string) => string;
}

/** Cuts the cells of CSV. A file that is not well-formed is cut too, as far as its cells can be told apart. */
export function csvCutter({ delimiter, headerLine, keepOf }: CsvCells): LineCutter {
  const code = `\\u{${delimiter.codePointAt(0)?.toString(16)}}`;
  const cell = new RegExp(`"(?:[^"]|"")*"|[^${code}\\r\\n]+`, "gu");
  let header: readonly string[] = [];
  /** By column, once one was needed. */
  let keeps: ReturnType<CsvCells["keepOf"]>[] = [];
  let lines = 0;
  let mayNameSecrets = false;
  return function* cells(line) {
    lines += 1;
    if (lines === headerLine) {
      header = line.split(delimiter).map((name) => name.replaceAll(/["\uFEFF]/g, "").trim());
      keeps = [];
      mayNameSecrets = namesSensitive(line);
    }
    // Most lines: their cells hold no more than they do themselves, unless something is escaped.
    if (!mayNameSecrets && !line.includes("\\") && !holdsCardNumber(line)) return yield line;
    let column = 0;
    let end = 0;
    for (const { 0: text, index } of line.matchAll(cell)) {
      const before = line.slice(end, index);
      column += before === delimiter ? 1 : before.split(delimiter).length - 1;
      end = index + text.length;
      const isQuoted = text.startsWith('"') && text.length > 1 && text.endsWith('"');
      const value = isQuoted ? text.slice(1, -1).replaceAll('""', '"') : text;
      const keep = keeps[column] ?? keepOf(header[column] ?? "");
      keeps[column] = keep;
      const kept = keep(value);
      if (kept === value) yield before + text;
      else yield before + (isQuoted && kept !== cut ? `"${kept.replaceAll('"', '""')}"` : kept);
    }
    yield line.slice(end);
  };
}

const cardDigitsMin = 13;
const cardDigitsMax = 19;
const [digitsShownFirst, digitsShownLast] = [6, 4];
const digitRun = new RegExp(`\\d{${cardDigitsMin},}`, "g");

/**
 * Masks card numbers in lines of fixed columns, whose width stays. Nothing separates columns, so that a card number
 * may be any part of a row of digits: such a part is masked, also where a longer number contains it by chance. Only the
 * columns that are known to hold something else are taken as a whole.
 *
 * @param known their places, from 1
 */
export function fixedCutter(known: readonly { readonly from: number; readonly length: number }[]): LineCutter {
  const columns = known
    .map(({ from, length }) => ({ from: from - 1, to: from - 1 + length }))
    .sort((one, other) => one.from - other.from);
  return function* parts(line) {
    let end = 0;
    for (const { from, to } of columns) {
      if (from > end) yield* maskedRuns(line.slice(end, from));
      const value = line.slice(Math.max(from, end), to);
      yield holdsCardNumber(value) ? withoutDigits(value) : value;
      end = Math.max(end, to);
    }
    yield* maskedRuns(line.slice(end));
  };
}

/** Empty parts let the event loop serve others while a long row of digits is searched. */
function* maskedRuns(text: string): Generator<string> {
  const hidden = new Set<number>();
  for (const { 0: digits, index } of text.matchAll(digitRun)) {
    for (let from = 0; from + cardDigitsMin <= digits.length; from += 1) {
      for (let to = from + cardDigitsMin; to <= Math.min(digits.length, from + cardDigitsMax); to += 1) {
        if (!isCardNumber(digits.slice(from, to))) continue;
        for (let at = from + digitsShownFirst; at < to - digitsShownLast; at += 1) hidden.add(index + at);
      }
      yield "";
    }
  }
  const masked =
    hidden.size === 0
      ? text
      : text
          .split("")
          .map((one, at) => (hidden.has(at) ? "*" : one))
          .join("");
  // Its digits may be separated.
  yield holdsCardNumber(masked) ? withoutDigits(masked) : masked;
}

function withoutDigits(text: string): string {
  return text.replaceAll(/\d/g, "*");
}
