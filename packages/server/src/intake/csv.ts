import { isUtf8 } from "node:buffer";

/** A text cannot be read beyond a line. The reason quotes nothing of it: it may hold a card number. */
export class UnreadableText extends Error {
  readonly line: number;

  constructor(line: number, reason: string) {
    super(reason);
    this.line = line;
  }
}

const characterBytesMax = 4;

/** How many bytes at the end of a text begin a UTF-8 character that goes on after it. */
function begunBytes(text: Uint8Array): number {
  for (let begun = 1; begun < characterBytesMax; begun += 1) {
    const byte = text.at(-begun) ?? 0;
    const isWithin = byte >> 6 === 2;
    if (!isWithin) return (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1) > begun ? begun : 0;
  }
  return 0;
}

/** @returns the lines that are UTF-8 before the first that is not. @param before the end of what was read before */
function readableLines(before: Uint8Array, chunk: Uint8Array): string {
  const bytes = Buffer.concat([before.subarray(before.length - begunBytes(before)), chunk]);
  let end = 0;
  for (let next = bytes.indexOf(10); next >= 0 && isUtf8(bytes.subarray(end, next)); next = bytes.indexOf(10, end)) {
    end = next + 1;
  }
  // Without the mark at the beginning of the file.
  return new TextDecoder("utf-8", { ignoreBOM: before.length > 0 }).decode(bytes.subarray(0, end));
}

export interface CsvRecord {
  readonly cells: readonly string[];
  /** From 1; of a record that spans lines, the last. */
  readonly line: number;
}

interface CsvForm {
  readonly delimiter?: string;
  /** The first line that is read, from 1. */
  readonly fromLine?: number;
  readonly charactersMax: number;
}

/** Text that is parsed in one turn of the event loop: measured, 64 KiB of CSV take 4 to 8 ms. */
const pieceCharacters = 32 * 1024;

/** @throws UnreadableText after the lines before: a decoder that replaces what is not UTF-8 would change an id unnoticed */
export async function* textOf(
  bytes: AsyncIterable<Uint8Array>,
  encoding: "utf-8" | "latin1" = "utf-8",
): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding, { fatal: true });
  let line = 1;
  let before: Uint8Array = new Uint8Array();
  let isReadable = true;
  for await (const chunk of piecesAndEnd(bytes)) {
    let text: string;
    try {
      text = chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    } catch {
      isReadable = false;
      text = readableLines(before, chunk ?? new Uint8Array());
    }
    for (let at = 0; at < text.length; at += pieceCharacters) yield text.slice(at, at + pieceCharacters);
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", end + 1)) line += 1;
    if (!isReadable) throw new UnreadableText(line, "from here on the file is not UTF-8");
    const ending = chunk?.subarray(1 - characterBytesMax) ?? new Uint8Array();
    before = Buffer.concat([before, ending]).subarray(1 - characterBytesMax);
  }
}

/**
 * RFC 4180, without empty lines. Yields the records of each piece.
 *
 * @throws UnreadableText after the records before the one that has no end
 */
export async function* csvRecords(
  pieces: AsyncIterable<string>,
  { delimiter = ",", fromLine = 1, charactersMax }: CsvForm,
): AsyncGenerator<readonly CsvRecord[]> {
  const { parse } = await import("csv-parse");
  const found: CsvRecord[] = [];
  const parser = parse({
    delimiter,
    record_delimiter: ["\r\n", "\n"],
    skip_empty_lines: true,
    relax_column_count: true,
    from_line: fromLine,
    max_record_size: charactersMax,
    // Read as a stream, it would drop the records before an error, as many as happen to be buffered.
    on_record: (cells: readonly string[], { lines: line }) => {
      found.push({ cells, line });
      return null;
    },
  });
  // Each error also comes by the callback of what was written.
  parser.on("error", () => undefined).resume();
  const write = (text: string | undefined) => {
    const { promise, resolve } = Promise.withResolvers<(Error & { readonly code?: string }) | null | undefined>();
    if (text === undefined) parser.end(resolve);
    else parser.write(text, resolve);
    return promise;
  };
  const broken: unknown[] = [];
  for await (const text of piecesAndEnd(untilBroken(pieces, broken))) {
    const isBroken = broken.length > 0;
    // Of a record that has ended it knows so a few characters later; one that has not is not read.
    const error = await write(isBroken ? " ".repeat(lookAhead) : text);
    if (found.length > 0) yield found.splice(0);
    if (isBroken) throw broken[0];
    if (error) {
      // The parser's own message quotes the record, and so perhaps a card.
      const isTooLong = error.code === "CSV_MAX_RECORD_SIZE";
      const reason = isTooLong ? `it has over ${charactersMax} characters` : reasons[error.code ?? ""];
      throw new UnreadableText(parser.info.lines, reason ?? "it cannot be read as CSV");
    }
  }
}

/** What the parser may wait for after a record: a line end, or a quote and a line end. */
const lookAhead = 8;

/** The pieces before one that cannot be read, and why it cannot. */
async function* untilBroken<Piece>(pieces: AsyncIterable<Piece>, broken: unknown[]): AsyncGenerator<Piece> {
  try {
    yield* pieces;
  } catch (error) {
    broken.push(error);
  }
}

const reasons: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: "a quote is not closed",
  CSV_INVALID_CLOSING_QUOTE: "a character follows a closing quote",
  INVALID_OPENING_QUOTE: "a quote stands inside a cell that has none around it",
};

/** Undefined: the end. */
export async function* piecesAndEnd<Piece>(pieces: AsyncIterable<Piece>): AsyncGenerator<Piece | undefined> {
  yield* pieces;
  yield undefined;
}
