import { InvalidArgumentError } from "commander";

/** The value of a `--limit`. @throws InvalidArgumentError where it is no whole number from 1 */
export function readLimit(text: string): number {
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It is a whole number from 1.");
}
