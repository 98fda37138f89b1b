import { type FieldLayout, type IsoMessage, type MessageLayout, standardFields } from "./codec.ts";
import type { IsoEncoding } from "./element.ts";

export const bcdEncoding: IsoEncoding = {
  mti: "bcd",
  bitmap: "binary",
  lengths: "bcd",
  text: "ascii",
  digits: "bcd",
  tracks: "bcd",
  bytes: "binary",
  oddDigits: { fixed: "left", variable: "right" },
};

export const asciiEncoding: IsoEncoding = {
  mti: "ascii",
  bitmap: "hex",
  lengths: "ascii",
  text: "ascii",
  digits: "ascii",
  tracks: "ascii",
  bytes: "hex",
  oddDigits: { fixed: "left", variable: "left" },
};

export const ebcdicEncoding: IsoEncoding = {
  mti: "ebcdic",
  bitmap: "hex-ebcdic",
  lengths: "ebcdic",
  text: "ebcdic",
  digits: "ebcdic",
  tracks: "ebcdic",
  bytes: "hex-ebcdic",
  oddDigits: { fixed: "left", variable: "left" },
};

/** The fields by their numbers. */
export function isoMessage(mti: string, fields: Readonly<Record<number, string>>) {
  const numbered = Object.entries(fields).map(([number, value]) => [Number(number), value] as const);
  return { mti, fields: new Map(numbered) } satisfies IsoMessage;
}

/** Every field of the standard, in one encoding. */
export function standardLayout(encoding: IsoEncoding, standard: "1987" | "1993" = "1987"): MessageLayout {
  const fields = [...standardFields[standard]].map(([number, format]): [number, FieldLayout] => [number, { format }]);
  return { encoding, fields: new Map(fields) };
}
