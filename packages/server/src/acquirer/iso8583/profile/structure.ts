import { IsoFormatError } from "../message/error.ts";

/** The form of a field that holds elements, each with a tag and a length. */
export type Structure =
  | {
      /** `02` `03` `ABC`: tag, then the number of characters, both in the field's own characters. */
      readonly form: "text";
      readonly tagCharacters: number;
      readonly lengthDigits: number;
      /** The length comes first, and counts the tag too. */
      readonly lengthFirst: boolean;
    }
  /** BER-TLV in a field of bytes. The values are hexadecimal, or characters in ASCII. */
  | { readonly form: "ber"; readonly values: "hex" | "ascii" };

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
  return /^(?:[0-9A-F]{2})+$/.test(tag) && berHead(`${tag}00`, 0)?.tag === tag;
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
    const head = structure.form === "ber" ? berHead(text, at) : textHead(text, at, structure);
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

interface Head {
  readonly tag: string;
  /** The first character of the value, and the one after it. */
  readonly from: number;
  readonly to: number;
}

function textHead(
  text: string,
  at: number,
  { tagCharacters, lengthDigits, lengthFirst }: Extract<Structure, { readonly form: "text" }>,
): Head | undefined {
  const tagAt = lengthFirst ? at + lengthDigits : at;
  const lengthAt = lengthFirst ? at : at + tagCharacters;
  const digits = text.slice(lengthAt, lengthAt + lengthDigits);
  if (digits.length < lengthDigits || !/^\d+$/.test(digits)) return undefined;
  const from = at + tagCharacters + lengthDigits;
  const to = from + Number(digits) - (lengthFirst ? tagCharacters : 0);
  return to < from ? undefined : { tag: text.slice(tagAt, tagAt + tagCharacters), from, to };
}

function berHead(text: string, start: number): Head | undefined {
  const byte = (at: number) => Number.parseInt(text.slice(at, at + 2), 16);
  let at = start + 2;
  // Five low bits that are all set: the tag continues, as long as the first bit of a byte is set.
  if ((byte(start) & 0x1f) === 0x1f) {
    while ((byte(at) & 0x80) !== 0) at += 2;
    at += 2;
  }
  const tag = text.slice(start, at);
  const first = byte(at);
  at += 2;
  if (Number.isNaN(first)) return undefined;
  if (first < 0x80) return { tag, from: at, to: at + first * 2 };
  const lengthBytes = first & 0x7f;
  const length = Number.parseInt(text.slice(at, at + lengthBytes * 2), 16);
  at += lengthBytes * 2;
  return Number.isNaN(length) ? undefined : { tag, from: at, to: at + length * 2 };
}
