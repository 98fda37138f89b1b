/** Only such an escape can make a lone surrogate: the text itself was decoded from UTF-8. */
const surrogateEscape = /\\u[dD][89a-fA-F]/;

/** Deeper than any IPN; a bound, because walking nested values recurses. */
const nestingMax = 64;

export type Parsed = { readonly value: unknown } | { readonly refused: "not_json" | "duplicate_key" };

/**
 * The value of a JSON text, or why it is refused. Beside what JSON.parse refuses:
 * a key that stands twice in one object, however escaped, is one value to the reader that keeps the first and another
 * to the reader that keeps the last; a lone surrogate has no UTF-8 form, so that two texts would share a signature.
 */
export function parseStrictly(text: string): Parsed {
  // A caller without types may hand over anything, and JSON.parse reads 0 as "0".
  if (typeof text !== "string") return { refused: "not_json" };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { refused: "not_json" };
  }
  const keys = countKeys(value, 0);
  if (keys === undefined) return { refused: "not_json" };
  // JSON.parse keeps one of two equal keys: then the text holds more keys than the value.
  if (!holdsAtMost(keys, text)) return { refused: "duplicate_key" };
  if (surrogateEscape.test(text) && !isWellFormedThroughout(value)) return { refused: "not_json" };
  return { value };
}

/** How many keys the value has in all; undefined when it is nested too deep. */
function countKeys(value: unknown, depth: number): number | undefined {
  if (typeof value !== "object" || value === null) return 0;
  if (depth === nestingMax) return undefined;
  const list = Array.isArray(value);
  const items: unknown[] = list ? value : Object.values(value);
  let keys = list ? 0 : items.length;
  for (const item of items) {
    if (typeof item !== "object") continue;
    const inner = countKeys(item, depth + 1);
    if (inner === undefined) return undefined;
    keys += inner;
  }
  return keys;
}

/** Whether a valid JSON text holds no more than so many keys. */
function holdsAtMost(keys: number, text: string): boolean {
  return (everyKeyMeetsItsColon(text) && colonsAfterQuotes(text) <= keys) || keysWritten(text) <= keys;
}

/** Where no white space parts a key from its colon and no string ends in a backslash, keys are counted by searching. */
function everyKeyMeetsItsColon(text: string): boolean {
  return !(
    text.includes('\\\\"') ||
    text.includes(" :") ||
    text.includes("\n:") ||
    text.includes("\t:") ||
    text.includes("\r:")
  );
}

/** Every key and, rarely, a `":` that is text inside a string. Measured: a tenth of the time of keysWritten. */
function colonsAfterQuotes(text: string): number {
  let count = 0;
  for (let at = text.indexOf('":'); at !== -1; at = text.indexOf('":', at + 2)) {
    if (text.charCodeAt(at - 1) !== backslash) count += 1;
  }
  return count;
}
const backslash = 0x5c;

/** Any string literal of a valid JSON text; the group is there when the literal is a key. */
const stringLiteral = /"(?:[^"\\]|\\.)*"(\s*:)?/g;

function keysWritten(text: string): number {
  let keys = 0;
  for (const match of text.matchAll(stringLiteral)) if (match[1] !== undefined) keys += 1;
  return keys;
}

function isWellFormedThroughout(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every(isWellFormedThroughout);
  return Object.entries(value).every(([key, item]) => key.isWellFormed() && isWellFormedThroughout(item));
}
