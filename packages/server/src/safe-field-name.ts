import { holdsCardNumber } from "./card-number.ts";

const charactersMax = 100;
/** The card guard takes a microsecond for each character. */
const examinedMax = 1_000;

/** The name of a field that a caller made up, as an error and the log may repeat it: cut, and without a card number. */
export function safeFieldName(name: string): string {
  if (name.length > examinedMax) return "[a long name]";
  return holdsCardNumber(name) ? "[a card number]" : name.slice(0, charactersMax);
}
