import { InvalidArgumentError } from "commander";

/** Reads an option's value. The returned function throws InvalidArgumentError if it is not a whole number within. */
export function wholeNumber(from: number, to: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (/^(0|[1-9]\d*)$/.test(text) && number >= from && number <= to) return number;
    throw new InvalidArgumentError(`It must be a whole number from ${from} to ${to}.`);
  };
}
