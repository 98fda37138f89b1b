import { setImmediate as nextTurn } from "node:timers/promises";
import { currencyDecimals } from "@paybell/contract";
import type { ClearingColumn, ClearingProfile } from "../acquirer/iso8583/profile/schema.ts";
import { holdsCardNumber, maskCardNumbers, merchantIdHoldsCardNumber } from "../guards/card-number.ts";
import { csvRecords, piecesAndEnd, textOf, UnreadableText } from "../intake/csv.ts";

/** No record is longer. */
const lineCharactersMax = 64 * 1024;
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
  const pages = layout.section.format === "csv" ? csvPages(pieces, layout.section) : fixedLines(pieces, layout.section);
  try {
    for await (const page of pages) {
      const lines = page.flatMap(({ line, cells }) => reader.read(line, cells) ?? []);
      if (lines.length > 0) yield lines;
      await nextTurn();
    }
  } catch (error) {
    throw error instanceof UnreadableText ? new UnreadableClearing(error.line, undefined, error.message) : error;
  }
}

interface FileRecord {
  readonly line: number;
  readonly cells: Cells;
}

async function* csvPages(pieces: AsyncIterable<string>, section: ClearingProfile): AsyncGenerator<FileRecord[]> {
  const { delimiter, skipLines, header } = section;
  const form = { delimiter, fromLine: skipLines + 1, charactersMax: lineCharactersMax };
  let at: ReadonlyMap<ClearingColumn, number> | undefined = header ? undefined : numbersOf(section);
  for await (const records of csvRecords(pieces, form)) {
    const page: FileRecord[] = [];
    for (const { cells, line } of records) {
      if (at === undefined) at = readHeader(cells, line, section);
      else {
        const places = at;
        page.push({ line, cells: (column) => cells[places.get(column) ?? columnsMax] });
      }
    }
    yield page;
  }
  if (at === undefined)
    throw new UnreadableClearing(1, undefined, "the file ends before the line that names the columns");
}

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
    if (names.includes(place, index + 1)) {
      throw new UnreadableClearing(line, column, `the line names the column "${place}" twice`);
    }
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

export type LineKind = "sale" | "refund" | "void" | "fee" | "chargeback";

/** A line of a clearing file: of its columns, those that the profile names, without card numbers. */
export interface ClearingLine {
  /** From 1. */
  readonly line: number;
  readonly kind: LineKind;
  readonly refId: string;
  /** Six digits; empty: none. */
  readonly trace: string;
  readonly tid: string;
  readonly mid: string;
  /** In the currency's smallest unit, without sign. */
  readonly minor: string;
  readonly currency: string;
  /** YYYY-MM-DD. */
  readonly day: string;
  /** The reason of a chargeback or a fee, as the file has it. */
  readonly reason: string;
}

/** The numbers of currencies, and the decimals with which the acquirer writes their amounts. */
type HostCurrencies = Readonly<Record<string, { readonly number: string; readonly exponent: number }>>;

export interface ClearingLayout {
  readonly section: ClearingProfile;
  readonly currencies: HostCurrencies;
  readonly timeZone: string;
}

/** A file cannot be read. The message quotes nothing of the file but the names of its columns. */
export class UnreadableClearing extends Error {
  override readonly name = "UnreadableClearing";
  readonly line: number;
  /** Its name in the profile, or its number; undefined: the line as a whole. */
  readonly column: string | undefined;

  constructor(line: number, column: string | undefined, problem: string) {
    super(`line ${line}${column === undefined ? "" : `, column ${column}`}: ${problem}.`);
    this.line = line;
    this.column = column;
  }
}

/** The cells of a line by the profile's columns; undefined: the line has no such cell. */
export type Cells = (column: ClearingColumn) => string | undefined;

const textMax = 64;
const linesText = /[\p{Cc}]/u;

/** Reads the lines of one file. A value that cannot be read names its line and column. */
class LineReader {
  readonly #section: ClearingProfile;
  readonly #currencies: HostCurrencies;
  readonly #byNumber: ReadonlyMap<string, string>;
  /** As most lines of a file have one day. */
  #lastDate: { readonly written: string; readonly day: string } | undefined;

  constructor({ section, currencies }: ClearingLayout) {
    this.#section = section;
    this.#currencies = currencies;
    this.#byNumber = new Map(Object.entries(currencies).map(([code, { number }]) => [number, code]));
  }

  /** @returns undefined for a line that is skipped @throws UnreadableClearing */
  read(line: number, cells: Cells): ClearingLine | undefined {
    const kind = this.#kind(line, cells);
    if (kind === "skip") return undefined;
    const currency = this.#currency(line, cells);
    const refId = this.#text(line, cells, "refId");
    const trace = this.#trace(line, cells);
    if (refId === "" && trace === "" && kind !== "fee") {
      throw new UnreadableClearing(line, "refId", "it is empty, and so is trace: nothing identifies the line");
    }
    return {
      line,
      kind,
      refId,
      trace,
      tid: this.#text(line, cells, "tid"),
      mid: this.#text(line, cells, "mid"),
      minor: this.#minor(line, cells, currency),
      currency,
      day: this.#day(line, cells),
      reason: this.#text(line, cells, "reason"),
    };
  }

  #kind(line: number, cells: Cells): LineKind | "skip" {
    if (this.#section.columns.kind === undefined) return "sale";
    const { kinds } = this.#section;
    const value = this.#cell(line, cells, "kind");
    const kind = Object.hasOwn(kinds, value) ? kinds[value] : undefined;
    if (kind !== undefined) return kind;
    throw new UnreadableClearing(line, "kind", "the profile's clearing.kinds does not have this value");
  }

  #currency(line: number, cells: Cells): string {
    const { columns, currency } = this.#section;
    const written = columns.currency === undefined ? (currency ?? "") : this.#cell(line, cells, "currency");
    const code = this.#byNumber.get(written) ?? written;
    if (currencyDecimals(code) !== undefined) return code;
    throw new UnreadableClearing(
      line,
      "currency",
      "it is neither a currency of ISO 4217 nor a number of the profile's",
    );
  }

  #minor(line: number, cells: Cells, currency: string): string {
    const decimals = currencyDecimals(currency) ?? 0;
    const written = this.#cell(line, cells, "amount").replace(/^[+-]/, "");
    const isMinor = this.#section.amounts === "minor";
    const [, whole, fraction = ""] = (isMinor ? /^(\d{1,18})$/ : /^(\d{1,15})(?:\.(\d{1,4}))?$/).exec(written) ?? [];
    if (whole === undefined) {
      const form = isMinor ? "digits without a point" : 'an amount such as "12.50"';
      throw new UnreadableClearing(line, "amount", `it is not ${form}`);
    }
    const has = isMinor ? (this.#currencies[currency]?.exponent ?? decimals) : fraction.length;
    const value = BigInt(whole + fraction);
    if (has <= decimals) return `${value * 10n ** BigInt(decimals - has)}`;
    const more = 10n ** BigInt(has - decimals);
    if (value % more === 0n) return `${value / more}`;
    throw new UnreadableClearing(line, "amount", `${currency} has ${decimals} decimals`);
  }

  #trace(line: number, cells: Cells): string {
    const digits = this.#text(line, cells, "trace");
    if (digits === "") return "";
    if (/^\d{1,12}$/.test(digits)) return digits.padStart(6, "0").slice(-6);
    throw new UnreadableClearing(line, "trace", "it is not a number");
  }

  #day(line: number, cells: Cells): string {
    const { dates } = this.#section;
    const written = this.#cell(line, cells, "date");
    if (written !== this.#lastDate?.written) this.#lastDate = { written, day: this.#dayOf(line, written, dates) };
    return this.#lastDate.day;
  }

  #dayOf(line: number, written: string, dates: string): string {
    const part = (letter: string) => {
      const [first, last] = [dates.indexOf(letter), dates.lastIndexOf(letter)];
      return written.slice(first, last + 1);
    };
    const year = part("Y").padStart(4, "20");
    const day = `${year}-${part("M")}-${part("D")}`;
    const separators = [...dates].every((letter, at) => /[YMD]/.test(letter) || written[at] === letter);
    const isDay = written.length === dates.length && separators && /^\d{4}-\d\d-\d\d$/.test(day);
    if (isDay && day >= "1970" && new Date(`${day}T00:00:00Z`).toJSON()?.slice(0, 10) === day) return day;
    throw new UnreadableClearing(line, "date", `it is not a day as ${dates}`);
  }

  /** @throws UnreadableClearing for a line that ends before this column */
  #cell(line: number, cells: Cells, column: ClearingColumn): string {
    const value = cells(column);
    if (value === undefined) throw new UnreadableClearing(line, column, "the line ends before it");
    return value.trim();
  }

  #text(line: number, cells: Cells, column: ClearingColumn): string {
    if (this.#section.columns[column] === undefined) return "";
    const value = this.#cell(line, cells, column);
    if (value.length > textMax) throw new UnreadableClearing(line, column, `it has over ${textMax} characters`);
    if (linesText.test(value)) throw new UnreadableClearing(line, column, "it has a control character");
    const holds = column === "mid" ? merchantIdHoldsCardNumber : holdsCardNumber;
    return value.length > 12 && holds(value) ? maskCardNumbers(Buffer.from(value)).toString() : value;
  }
}
