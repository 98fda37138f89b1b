import { isUtf8 } from "node:buffer";

/** A text cannot be read beyond a line. The reason quotes nothing of it: it may hold a card number. */
export class UnreadableText extends Error {
  readonly line: number;

  constructor(line: number, reason: string) {
    super(reason);
    this.line = line;
  }
}

/** How many lines of a piece are UTF-8 before the first that is not. */
function readableLines(piece: Uint8Array = new Uint8Array()): number {
  let lines = 0;
  // It may begin within a character.
  let from = piece.findIndex((byte) => byte >> 6 !== 2);
  for (let end = piece.indexOf(10); end >= 0 && isUtf8(piece.subarray(from, end)); end = piece.indexOf(10, from)) {
    lines += 1;
    from = end + 1;
  }
  return lines;
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

/** @throws UnreadableText: a decoder that replaces what is not UTF-8 would change an id or a payment unnoticed */
export async function* textOf(
  bytes: AsyncIterable<Uint8Array>,
  encoding: "utf-8" | "latin1" = "utf-8",
): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding, { fatal: true });
  let line = 1;
  const decoded = (chunk?: Uint8Array) => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    } catch {
      throw new UnreadableText(line + readableLines(chunk), "from here on the file is not UTF-8");
    }
  };
  for await (const chunk of bytes) {
    const text = decoded(chunk);
    for (let at = 0; at < text.length; at += pieceCharacters) yield text.slice(at, at + pieceCharacters);
    line += chunk.reduce((count, byte) => (byte === 10 ? count + 1 : count), 0);
  }
  yield decoded();
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
  for await (const text of piecesAndEnd(pieces)) {
    const { promise, resolve } = Promise.withResolvers<(Error & { readonly code?: string }) | null | undefined>();
    if (text === undefined) parser.end(resolve);
    else parser.write(text, resolve);
    const error = await promise;
    if (found.length > 0) yield found.splice(0);
    if (error) {
      // The parser's own message quotes the record, and so perhaps a card.
      const isTooLong = error.code === "CSV_MAX_RECORD_SIZE";
      const reason = isTooLong ? `it has over ${charactersMax} characters` : reasons[error.code ?? ""];
      throw new UnreadableText(parser.info.lines, reason ?? "it cannot be read as CSV");
    }
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
