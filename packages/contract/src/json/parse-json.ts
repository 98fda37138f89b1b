const space = 0x20;
const quote = 0x22;
const colon = 0x3a;
const backslash = 0x5c;
const literal = /-?[0-9][0-9.eE+-]*|true|false|null/y;

/** An object or array that is not closed yet. */
type Holder =
  | { readonly close: "}"; readonly value: Record<string, unknown>; key: string }
  | { readonly close: "]"; readonly value: unknown[] };

/**
 * As JSON.parse, but correct for every text. Node 24 and 26 confuse keys that are written with escapes: after
 * `{"\\":2}` they read `{"\u0062":2}` as the earlier key (nodejs/node#63785), so that one caller's text changes the
 * meaning of another's. A text with such a key is parsed here; JSON.parse reads every other one.
 *
 * @throws SyntaxError
 */
export function parseJson(text: string): unknown {
  return text.includes("\\") && writtenKeys(text).areEscaped ? new Reader(text).read() : JSON.parse(text);
}

/** The first key that a JSON text has twice in one object; undefined when there is none. */
export function repeatedKey(text: string): string | undefined {
  const reader = new Reader(text);
  reader.read();
  return reader.repeatedKey;
}

/** Counts the keys of all objects in a JSON value. The caller bounds the nesting. */
export function countKeys(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  let keys = 0;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === "object") keys += countKeys(item);
    return keys;
  }
  // No object has a key that it does not own: it comes from the parser. Measured: half the time of Object.values.
  for (const key in value) {
    const item: unknown = value[key as keyof typeof value];
    keys += typeof item === "object" ? countKeys(item) + 1 : 1;
  }
  return keys;
}

/** The index after the closing quote of the string that begins at `start`; 0 when it has none. */
export function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end + 1;
}

/** Whether an odd number of backslashes precedes an index. */
function isEscaped(text: string, index: number): boolean {
  let before = index - 1;
  while (text.charCodeAt(before) === backslash) before -= 1;
  return (index - before) % 2 === 0;
}

/** The index of the first character that is not white space, from an index on. */
export function afterSpace(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) <= space) at += 1;
  return at;
}

/**
 * The number of keys in a valid JSON text, and whether any is written with an escape. Measured: a regular expression
 * takes three times as long.
 */
export function writtenKeys(text: string): { readonly count: number; readonly areEscaped: boolean } {
  const hasEscapes = text.includes("\\");
  let count = 0;
  let areEscaped = false;
  let start = text.indexOf('"');
  while (start !== -1) {
    const end = endOfString(text, start);
    // An unterminated string: JSON.parse refuses the text.
    if (end === 0) break;
    const at = afterSpace(text, end);
    if (text.charCodeAt(at) === colon) {
      count += 1;
      areEscaped ||= hasEscapes && text.slice(start, end).includes("\\");
    }
    start = text.charCodeAt(at + 1) === quote ? at + 1 : text.indexOf('"', at);
  }
  return { count, areEscaped };
}

/** Parses without recursion, because the sender decides how deep a text is nested. */
class Reader {
  readonly #text: string;
  readonly #holders: Holder[] = [];
  #at = 0;
  repeatedKey: string | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  read(): unknown {
    for (;;) {
      if (this.#opens()) continue;
      let value = this.#scalarOrEmpty();
      while (!this.#expectsNext(value)) {
        const closed = this.#holders.pop();
        if (closed === undefined) return value;
        value = closed.value;
      }
    }
  }

  /** Whether a non-empty object or array begins here. */
  #opens(): boolean {
    const bracket = this.#peek();
    if (bracket !== "{" && bracket !== "[") return false;
    const holder: Holder = bracket === "{" ? { close: "}", value: {}, key: "" } : { close: "]", value: [] };
    const start = this.#at;
    this.#at += 1;
    if (this.#peek() === holder.close) {
      this.#at = start;
      return false;
    }
    this.#holders.push(holder);
    if (holder.close === "}") holder.key = this.#key();
    return true;
  }

  #scalarOrEmpty(): unknown {
    const first = this.#peek();
    if (first === '"') return this.#string();
    if (first === "{" || first === "[") {
      this.#at += 1;
      this.#peek();
      this.#at += 1;
      return first === "{" ? {} : [];
    }
    literal.lastIndex = this.#at;
    const [written] = literal.exec(this.#text) ?? this.#fail();
    this.#at += written.length;
    return JSON.parse(written);
  }

  /** Adds the value to its container. False at the end of the container, or of the text. */
  #expectsNext(value: unknown): boolean {
    const holder = this.#holders.at(-1);
    const next = this.#peek();
    if (holder === undefined) return next === undefined ? false : this.#fail();
    if (holder.close === "]") holder.value.push(value);
    else this.#set(holder.value, holder.key, value);
    this.#at += 1;
    if (next === holder.close) return false;
    if (next !== ",") this.#fail();
    if (holder.close === "}") holder.key = this.#key();
    return true;
  }

  #key(): string {
    if (this.#peek() !== '"') this.#fail();
    const key = this.#string();
    if (this.#peek() !== ":") this.#fail();
    this.#at += 1;
    return key;
  }

  /** A single string has no keys, so JSON.parse is safe here. */
  #string(): string {
    const end = endOfString(this.#text, this.#at);
    if (end === 0) this.#fail();
    const written = this.#text.slice(this.#at, end);
    this.#at = end;
    return JSON.parse(written) as string;
  }

  /** The next character that is not white space; undefined at the end. */
  #peek(): string | undefined {
    while (" \t\n\r".includes(this.#text[this.#at] ?? "x")) this.#at += 1;
    return this.#text[this.#at];
  }

  #fail(): never {
    throw new SyntaxError(`This is not JSON, from character ${this.#at} on.`);
  }

  /** As JSON.parse does: a key `__proto__` is a key as any other. */
  #set(object: Record<string, unknown>, key: string, value: unknown): void {
    if (Object.hasOwn(object, key)) this.repeatedKey ??= key;
    if (key !== "__proto__") object[key] = value;
    else Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  }
}
