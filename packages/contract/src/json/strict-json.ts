import { countKeys, parseJson, writtenKeys } from "./parse-json.ts";

/** Only such an escape can produce a lone surrogate, because the text itself was decoded from UTF-8. */
const surrogateEscape = /\\u[dD][89a-fA-F]/;

/** Deeper than any IPN. It bounds the recursion. */
const nestingMax = 64;

export type Parsed = { readonly value: unknown } | { readonly refused: "not_json" | "duplicate_key" };

/**
 * Returns the value of a JSON text, or the reason for refusing it. It refuses more than JSON.parse does. A duplicate
 * key in an object, however escaped, has one value for a reader that keeps the first and another for a reader that
 * keeps the last. A lone surrogate has no UTF-8 form, so two texts would have the same signature.
 */
export function parseStrictly(text: string): Parsed {
  // An untyped caller may pass anything, and JSON.parse reads 0 as "0".
  if (typeof text !== "string") return { refused: "not_json" };
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return { refused: "not_json" };
  }
  const shortest = shortestLength(value, 0);
  if (shortest === undefined) return { refused: "not_json" };
  // JSON.parse keeps one of two equal keys: then the text has more keys than the value.
  if (!hasNoRoom(text, shortest) && writtenKeys(text).count > countKeys(value)) return { refused: "duplicate_key" };
  if (text.includes("\\u") && surrogateEscape.test(text) && !isWellFormedThroughout(value))
    return { refused: "not_json" };
  return { value };
}

/** A lower bound of the length of any JSON text of the value; undefined if it is nested too deep. */
function shortestLength(value: unknown, depth: number): number | undefined {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 1;
  if (depth === nestingMax) return undefined;
  const isList = Array.isArray(value);
  const keys = Object.keys(value);
  const items: readonly unknown[] = isList ? value : Object.values(value);
  // The brackets, and the commas between the items.
  let length = 2 + Math.max(0, items.length - 1);
  for (let at = 0; at < items.length; at += 1) {
    const item = items[at];
    const inner = typeof item === "string" ? item.length + 2 : shortestLength(item, depth + 1);
    if (inner === undefined) return undefined;
    // The quotes of a key, and its colon.
    length += isList ? inner : inner + (keys[at] ?? "").length + 3;
  }
  return length;
}

/** The shortest additional pair: `"":1,`. */
const pairLengthMin = 5;

/**
 * Whether the text, without its escapes, is too short to contain one key more than its value. Measured: this avoids the
 * scan of compact texts in two thirds of the cases.
 */
function hasNoRoom(text: string, shortest: number): boolean {
  if (text.length - shortest < pairLengthMin) return true;
  // An escaped backslash is two characters and one escape, so escapes cannot be counted by searching.
  return !text.includes("\\\\") && text.length - shortest - backslashes(text) < pairLengthMin;
}

function backslashes(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\\"); at !== -1; at = text.indexOf("\\", at + 1)) count += 1;
  return count;
}

function isWellFormedThroughout(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every(isWellFormedThroughout);
  return Object.entries(value).every(([key, item]) => key.isWellFormed() && isWellFormedThroughout(item));
}
