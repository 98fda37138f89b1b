const text999 = "ans...999";

/** ISO 8583:1987. Field 1 is the secondary bitmap, which the message itself decides. */
const fields1987: ReadonlyMap<number, string> = new Map([
  ...numbered(2, ["n..19", "n6", "n12", "n12", "n12", "n10", "n8", "n8", "n8"]),
  ...numbered(11, ["n6", "n6", "n4", "n4", "n4", "n4", "n4", "n4", "n3", "n3"]),
  ...numbered(21, ["n3", "n3", "n3", "n3", "n2", "n2", "n1", "xn8", "xn8", "xn8"]),
  ...numbered(31, ["xn8", "n..11", "n..11", "ns..28", "z..37", "z...104", "an12", "an6", "an2", "an3"]),
  ...numbered(41, ["ans8", "ans15", "ans40", "an..25", "an..76", text999, text999, text999, "an3", "an3"]),
  ...numbered(51, ["an3", "b8", "n16", "an...120", text999, text999, text999, text999, text999, text999]),
  ...numbered(61, [text999, text999, text999, "b8", "b1", "n1", "n2", "n3", "n3", "n3"]),
  ...numbered(71, ["n4", "n4", "n6", "n10", "n10", "n10", "n10", "n10", "n10", "n10"]),
  ...numbered(81, ["n10", "n12", "n12", "n12", "n12", "n16", "n16", "n16", "n16", "n42"]),
  ...numbered(91, ["an1", "an2", "an6", "an7", "an42", "b16", "xn16", "ans25", "n..11", "n..11"]),
  ...numbered(101, ["ans..17", "ans..28", "ans..28", "ans...100", text999, text999, text999, text999, text999]),
  ...numbered(110, [text999, text999, text999, text999, text999, text999, text999, text999, text999, text999]),
  ...numbered(120, [text999, text999, text999, text999, text999, text999, text999, text999, "b8"]),
]);

/** ISO 8583:1993, likewise. */
const fields1993: ReadonlyMap<number, string> = new Map([
  ...numbered(2, ["n..19", "n6", "n12", "n12", "n12", "n10", "n8", "n8", "n8"]),
  ...numbered(11, ["n6", "n12", "n4", "n4", "n6", "n4", "n4", "n4", "n3", "n3"]),
  ...numbered(21, ["n3", "an12", "n3", "n3", "n4", "n4", "n1", "n6", "n3", "n24"]),
  ...numbered(31, ["ans..99", "n..11", "n..11", "ns..28", "z..37", "z...104", "an12", "an6", "n3", "n3"]),
  ...numbered(41, ["ans8", "ans15", "ans..99", "ans..99", "ans..76", "ans...204", text999, text999, "an3", "an3"]),
  ...numbered(51, ["an3", "b8", "b..48", "ans...120", "b...255", "n..35", "n3", "n..11", text999, text999]),
  ...numbered(61, [text999, text999, text999, "b8", "b8", "ans...204", "n2", "n3", "n3", "n3"]),
  ...numbered(71, ["n8", text999, "n6", "n10", "n10", "n10", "n10", "n10", "n10", "n10"]),
  ...numbered(81, ["n10", "n10", "n10", "n10", "n10", "n16", "n16", "n16", "n16", "n10"]),
  ...numbered(91, ["n3", "n3", "n..11", "n..11", "ans..99", "b...999", "xn16", "ans25", "an..11", "n..11"]),
  ...numbered(101, ["ans..17", "ans..28", "ans..28", "ans...100", "n16", "n16", "n10", "n10", "ans..84", "ans..84"]),
  ...numbered(111, [text999, text999, text999, text999, text999, text999, text999, text999, text999, text999]),
  ...numbered(121, [text999, text999, text999, text999, text999, text999, text999, "b8"]),
]);

/** The format of each data element by the version of the standard. A profile says where its host differs. */
export const standardFields = { "1987": fields1987, "1993": fields1993 } as const;

function numbered(first: number, formats: readonly string[]): [number, string][] {
  return formats.map((format, at) => [first + at, format]);
}
