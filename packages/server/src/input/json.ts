import { isUtf8 } from "node:buffer";
import { randomInt } from "node:crypto";
import { afterSpace, countKeys, endOfString, parseJson, repeatedKey } from "@paybell/contract";
import { ServiceError } from "../errors.ts";
import { safeFieldName } from "../guards/safe-text.ts";

/**
 * Parses a JSON body strictly: UTF-8, bounded, and without duplicate keys. Of two equal keys, one reader keeps the
 * first and another the last, so they would see two different commands.
 *
 * @throws ServiceError `invalid_json`.
 */
export function readJson(bytes: Buffer, bounds: BodyBounds = bodyBounds.ofReport): unknown {
  if (!isUtf8(bytes)) throw new ServiceError("invalid_json", "The body is not UTF-8.");
  const text = bytes.toString("utf8");
  const keys = keysWithinBounds(text, bounds);
  const value = parse(text);
  // JSON.parse keeps one of two equal keys: then the text has more keys than the value.
  if (keys !== countKeys(value)) {
    const key = JSON.stringify(safeFieldName(repeatedKey(text) ?? ""));
    throw new ServiceError("invalid_json", `The key ${key} appears twice in one object.`);
  }
  return value;
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    // The parser's own message quotes the body, and so perhaps a card.
    throw new ServiceError("invalid_json", "The body is not well-formed JSON.");
  }
}

export interface BodyBounds {
  readonly nestingMax: number;
  /** Includes lists and objects themselves. */
  readonly valuesMax: number;
}

/** Deeper than any request; also a bound for walks that recurse. */
const nestingMax = 32;
/** More than any object of ours can have: with the same key a million times the parser takes half a second. */
const objectKeysMax = 256;
/** Different names of keys in the whole body. Every new one costs the parser as much as ten known ones. */
const namesMax = 1_024;
/** Different lists of keys that its objects have: the parser builds a class for each. A report has 1,000 items. */
const shapesMax = 2_048;

/** What a body may hold: `ofReport`, that of an operator, whose other bodies have the bytes of a partner's. */
export const bodyBounds = {
  /** A command has 30 values on two levels. */
  ofPartner: { bytesMax: 64 * 1_024, nestingMax: 4, valuesMax: 200 },
  /** A settlement of 50,000 entries holds 150,000, and 8 MiB of such entries 350,000. */
  ofReport: { bytesMax: 8 * 1_024 * 1_024, nestingMax, valuesMax: 400_000 },
} as const;

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openList = 0x5b;
const closeList = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

const hashBits = 16;
// FNV-1a, with a random start for each process, so that nobody can construct colliding names.
const hashStart = randomInt(2 ** 32);
const hashFactor = 0x01000193;

/**
 * Counts the keys in a JSON text. Refuses, before anything is parsed, texts for which the parser would
 * take seconds: 8 MiB of brackets, of empty objects or of distinct keys. Measured: 3 ns a character, whatever they are.
 * Invalid JSON is left to the parser.
 *
 * @throws ServiceError `invalid_json`, naming the bound.
 */
function keysWithinBounds(text: string, bounds: BodyBounds): number {
  const extent = new Extent(bounds);
  const { length } = text;
  for (let at = 0; at < length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === quote) {
      const end = endOfString(text, at);
      if (end === 0) break;
      const next = afterSpace(text, end);
      if (text.charCodeAt(next) === colon) extent.key(text, at + 1, end - 1);
      at = next - 1;
    } else if (character === comma) extent.value();
    else if (character === openObject || character === openList) extent.open();
    else if (character === closeObject || character === closeList) extent.close();
  }
  return extent.keys;
}

/** The counts so far. */
class Extent {
  keys = 0;
  #values = 1;
  #depth = 0;
  readonly #keysAt = new Int32Array(nestingMax + 1);
  /** The hashes of the keys of each open object, in order. */
  readonly #shapeAt = new Int32Array(nestingMax + 1);
  #names: Different | undefined;
  #shapes: Different | undefined;
  readonly #bounds: BodyBounds;

  constructor(bounds: BodyBounds) {
    this.#bounds = bounds;
  }

  key(text: string, start: number, end: number): void {
    const depth = this.#depth;
    this.keys += 1;
    const keys = (this.#keysAt[depth] ?? 0) + 1;
    this.#keysAt[depth] = keys;
    if (keys > objectKeysMax) throw tooMuch(`an object with over ${objectKeysMax} keys`);
    // Fewer keys are neither more names nor more shapes: most bodies end before.
    if (this.keys <= namesMax) return;
    this.#names ??= new Different();
    const name = hashOf(text, start, end);
    if (this.#names.add(name) > namesMax) throw tooMuch(`over ${namesMax} different keys`);
    this.#shapeAt[depth] = Math.imul((this.#shapeAt[depth] ?? 0) ^ name, hashFactor);
  }

  value(): void {
    this.#values += 1;
    const { valuesMax } = this.#bounds;
    if (this.#values > valuesMax) throw tooMuch(`over ${valuesMax} values`);
  }

  open(): void {
    this.value();
    this.#depth += 1;
    const { nestingMax: levels } = this.#bounds;
    if (this.#depth > levels) {
      throw new ServiceError("invalid_json", `The body is nested deeper than ${levels} levels.`);
    }
    this.#keysAt[this.#depth] = 0;
    this.#shapeAt[this.#depth] = 0;
  }

  close(): void {
    const shape = this.#shapeAt[this.#depth] ?? 0;
    if (this.#depth > 0) this.#depth -= 1;
    if (shape === 0) return;
    this.#shapes ??= new Different();
    if (this.#shapes.add(shape) > shapesMax) throw tooMuch(`objects of over ${shapesMax} kinds`);
  }
}

function hashOf(text: string, start: number, end: number): number {
  let hash = hashStart;
  for (let at = start; at < end; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), hashFactor);
  return hash;
}

/** Counts distinct values, except for rare collisions. */
class Different {
  readonly #seen = new Uint8Array(2 ** hashBits);
  #count = 0;

  add(hash: number): number {
    // All bits affect the ones that are used.
    const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    const place = (mixed ^ (mixed >>> hashBits)) & (2 ** hashBits - 1);
    if (this.#seen[place] === 0) {
      this.#seen[place] = 1;
      this.#count += 1;
    }
    return this.#count;
  }
}

function tooMuch(what: string): ServiceError {
  return new ServiceError("invalid_json", `The body holds ${what}.`);
}
