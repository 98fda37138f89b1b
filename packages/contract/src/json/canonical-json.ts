/** Bounds the recursion, so that hostile nesting throws a TypeError instead of exhausting the stack. */
const nestingMax = 500;

/**
 * Returns the canonical JSON of a value: RFC 8785 (JSON Canonicalization Scheme). Object keys are in UTF-16 order,
 * without whitespace, numbers and strings as ECMAScript writes them. A property whose value is undefined is left out,
 * as JSON.stringify does.
 *
 * @throws TypeError for a value that JSON cannot represent (a lone surrogate, NaN, an infinity, a bigint, a function, a
 * symbol, undefined in a list), and for nesting deeper than 500.
 */
export function canonicalJson(value: unknown): string {
  return write(value, 0);
}

function write(value: unknown, depth: number): string {
  if (typeof value === "string") return writeString(value);
  if (typeof value === "number") return writeNumber(value);
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value !== "object") throw new TypeError(`JSON has no ${typeof value}`);
  if (depth === nestingMax) throw new TypeError(`JSON nested deeper than ${nestingMax}`);
  if (Array.isArray(value)) return `[${value.map((item) => write(item, depth + 1)).join(",")}]`;
  return writeObject(value as Record<string, unknown>, depth + 1);
}

function writeObject(object: Record<string, unknown>, depth: number): string {
  let text = "";
  // sort() orders by UTF-16 code units by default, as RFC 8785, section 3.2.3 requires.
  for (const key of Object.keys(object).sort()) {
    const value = object[key];
    if (value === undefined) continue;
    text += `${text === "" ? "" : ","}${writeString(key)}:${write(value, depth)}`;
  }
  return `{${text}}`;
}

function writeString(text: string): string {
  if (!text.isWellFormed()) throw new TypeError("JSON text with a lone surrogate has no canonical form");
  return JSON.stringify(text);
}

function writeNumber(number: number): string {
  if (!Number.isFinite(number)) throw new TypeError("JSON has no NaN and no infinity");
  return JSON.stringify(number);
}
