import { type TlvHead, tlvHead } from "../../../ber-tlv.ts";
import type { IsoMessage } from "../message/codec.ts";
import { IsoFormatError } from "../message/element.ts";
import type { MessageTemplate, Structure } from "./schema.ts";
import { type Described, type HostValues, type ValueName, valueIn, valueNames } from "./values.ts";

export type Write = (message: Described, isRepeat: boolean) => IsoMessage;

export function messageWriter({ mti, repeatMti, fields }: MessageTemplate, host: HostValues): Write {
  const writers = fieldWriters(fields, host);
  const again = repeatMti ?? `${mti.slice(0, 3)}${Number(mti[3]) + 1}`;
  return (message, isRepeat) => {
    const written = new Map<number, string>();
    for (const { number, write } of writers) {
      const value = write(message, host);
      if (value !== "") written.set(number, value);
    }
    return { mti: isRepeat ? again : mti, fields: written };
  };
}

interface FieldWriter {
  readonly number: number;
  readonly write: (message: Described, host: HostValues) => string;
}

/** The writers of a message's fields, by their number. */
function fieldWriters(fields: MessageTemplate["fields"], { profile: { structures } }: HostValues): FieldWriter[] {
  const byNumber = Map.groupBy(Object.entries(fields), ([key]) => placeOf(key).field);
  const numbered = [...byNumber].sort(([one], [other]) => one - other);
  return numbered.map(([number, templates]) => {
    const structure = structures[String(number)];
    const whole = fields[String(number)];
    const isWhole = whole !== undefined || structure === undefined;
    return { number, write: isWhole ? templateWriter(whole ?? "") : elementsWriter(templates, structure) };
  });
}

/** The elements are written in their order, without those that a message has no value for. */
function elementsWriter(templates: readonly (readonly [string, string])[], structure: Structure): FieldWriter["write"] {
  const parts = templates.map(([key, template]) => ({ tag: placeOf(key).tag, write: templateWriter(template) }));
  return (message, host) => {
    const elements = parts.map(({ tag, write }) => [tag, write(message, host)] as const);
    const written = elements.filter(([, value]) => value !== "");
    return writeElements(written, structure);
  };
}

/** Text, or a value by its name, padded with zeros to so many digits. */
type Part = string | { readonly name: ValueName; readonly digits: number };

const placeholder = /\{([A-Za-z][A-Za-z0-9]*)(?::(\d{1,2}))?\}/g;

/** The parts of a template that cannot be parsed. */
export function templateProblems(template: string): string[] {
  const problems = [...template.matchAll(placeholder)].flatMap(([whole, name = ""]) =>
    isValueName(name) ? [] : [`there is no ${whole}; the values are ${valueNames.join(", ")}`],
  );
  if (/[{}]/.test(template.replaceAll(placeholder, ""))) problems.push("a brace has no counterpart");
  return problems;
}

/**
 * Writes a field: text, and values in braces, `{batchNo}`; `{saleQuantity:3}` is padded with zeros to three digits. It
 * writes nothing, and the field is left out, where the template names values and a message has none of them.
 */
function templateWriter(template: string): (message: Described, host: HostValues) => string {
  const parts = partsOf(template);
  const namesValues = parts.some((part) => typeof part !== "string");
  return (message, host) => {
    let text = "";
    let hasValue = !namesValues;
    for (const part of parts) {
      const written = typeof part === "string" ? part : padded(valueIn(part.name, message, host), part);
      if (typeof part !== "string" && written !== "") hasValue = true;
      text += written;
    }
    return hasValue ? text : "";
  };
}

/**
 * Reads a field that is written by the same template: the values by their names. Undefined if the text has another
 * form, or if the template does not tell where a value ends.
 */
export function templateReader(template: string): (text: string) => ReadonlyMap<ValueName, string> | undefined {
  const parts = partsOf(template);
  return (text) => {
    const values = new Map<ValueName, string>();
    let at = 0;
    for (const [nth, part] of parts.entries()) {
      const isLast = nth === parts.length - 1;
      if (typeof part !== "string" && part.digits === 0 && !isLast) return undefined;
      const end = typeof part !== "string" && part.digits === 0 ? text.length : at + lengthOf(part);
      const written = text.slice(at, end);
      if (typeof part === "string" ? written !== part : written.length === 0 || end > text.length) return undefined;
      if (typeof part !== "string") values.set(part.name, written);
      at = end;
    }
    return at === text.length ? values : undefined;
  };
}

/** Whether it writes totals of a batch. */
export function isOfTotals(template: string): boolean {
  return partsOf(template).some((part) => typeof part !== "string" && /(?:Quantity|Total)$/.test(part.name));
}

export function valuesIn(template: string): readonly ValueName[] {
  return partsOf(template).flatMap((part) => (typeof part === "string" ? [] : [part.name]));
}

function lengthOf(part: Part): number {
  return typeof part === "string" ? part.length : part.digits;
}

function partsOf(template: string): Part[] {
  const parts: Part[] = [];
  let at = 0;
  for (const { 0: whole, 1: name = "", 2: digits = "0", index } of template.matchAll(placeholder)) {
    if (index > at) parts.push(template.slice(at, index));
    if (!isValueName(name)) throw new TypeError(`There is no ${whole}.`);
    parts.push({ name, digits: Number(digits) });
    at = index + whole.length;
  }
  if (at < template.length) parts.push(template.slice(at));
  return parts;
}

/** An amount that does not fit must not lose its first digit. */
function padded(value: string, { name, digits }: Exclude<Part, string>): string {
  if (digits === 0 || value === "") return value;
  if (value.length > digits) throw new IsoFormatError(`${name} has more than the ${digits} digits of its place`);
  return value.padStart(digits, "0");
}

function isValueName(name: string): name is ValueName {
  return (valueNames as readonly string[]).includes(name);
}

/** `48`, or `48.02`: the element 02 of field 48. */
export function placeOf(key: string): { readonly field: number; readonly tag: string } {
  const [field = "", tag = ""] = key.split(".");
  return { field: Number(field), tag };
}

/** Why an element cannot have this tag; undefined if it can. */
export function tagProblem(tag: string, structure: Structure): string | undefined {
  if (structure.form === "ber")
    return isBerTag(tag) ? undefined : `${tag} is not a tag of BER-TLV in upper-case hexadecimal`;
  return tag.length === structure.tagCharacters ? undefined : `a tag has ${structure.tagCharacters} characters`;
}

function isBerTag(tag: string): boolean {
  return /^(?:[0-9A-F]{2})+$/.test(tag) && tlvHead(`${tag}00`, 0)?.tag === tag;
}

export type Elements = readonly (readonly [tag: string, value: string])[];

/** @throws IsoFormatError if an element is too long for its length */
export function writeElements(elements: Elements, structure: Structure): string {
  return elements.map(([tag, value]) => writeElement(tag, value, structure)).join("");
}

function writeElement(tag: string, value: string, structure: Structure): string {
  if (structure.form === "ber") {
    const bytes = structure.values === "hex" ? value.toUpperCase() : hexOf(value);
    return tag + berLength(bytes.length / 2) + bytes;
  }
  const { lengthDigits, lengthFirst } = structure;
  const length = (value.length + (lengthFirst ? tag.length : 0)).toString().padStart(lengthDigits, "0");
  if (length.length > lengthDigits) throw new IsoFormatError(`the element ${tag} is too long for its length`);
  return lengthFirst ? length + tag + value : tag + length + value;
}

function hexOf(text: string): string {
  return Buffer.from(text, "latin1").toString("hex").toUpperCase();
}

function berLength(bytes: number): string {
  const hex = bytes.toString(16).toUpperCase();
  const even = hex.length % 2 === 0 ? hex : `0${hex}`;
  return bytes < 0x80 ? even : `8${even.length / 2}${even}`;
}

/** The value of the first element with this tag; empty if there is none, or if the text before it cannot be read. */
export function elementIn(text: string, wanted: string, structure: Structure): string {
  for (let at = 0; at < text.length; ) {
    const head = structure.form === "ber" ? tlvHead(text, at) : textHead(text, at, structure);
    if (head === undefined || head.to > text.length) return "";
    if (head.tag === wanted) return contentOf(text.slice(head.from, head.to), structure);
    at = head.to;
  }
  return "";
}

function contentOf(value: string, structure: Structure): string {
  if (structure.form === "text" || structure.values === "hex") return value;
  return Buffer.from(value, "hex").toString("latin1");
}

function textHead(
  text: string,
  at: number,
  { tagCharacters, lengthDigits, lengthFirst }: Extract<Structure, { readonly form: "text" }>,
): TlvHead | undefined {
  const tagAt = lengthFirst ? at + lengthDigits : at;
  const lengthAt = lengthFirst ? at : at + tagCharacters;
  const digits = text.slice(lengthAt, lengthAt + lengthDigits);
  if (digits.length < lengthDigits || !/^\d+$/.test(digits)) return undefined;
  const from = at + tagCharacters + lengthDigits;
  const to = from + Number(digits) - (lengthFirst ? tagCharacters : 0);
  return to < from ? undefined : { tag: text.slice(tagAt, tagAt + tagCharacters), from, to };
}
