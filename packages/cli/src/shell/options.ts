import { InvalidArgumentError, Option } from "@commander-js/extra-typings";
import type { CommandContext } from "./context.ts";

/** Reads an option's value. The returned function throws InvalidArgumentError if it is not a whole number within. */
export function wholeNumber(from: number, to: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (/^(0|[1-9]\d*)$/.test(text) && number >= from && number <= to) return number;
    throw new InvalidArgumentError(`It must be a whole number from ${from} to ${to}.`);
  };
}

/** Lists the values of an option for the help: "a, b or c". */
export function anyOf(values: readonly string[]): string {
  return new Intl.ListFormat("en-GB", { type: "disjunction" }).format(values);
}

/** A day, or a time with its offset from UTC. JavaScript alone takes "1" and "order-7" for times, too. */
const isoTime = /^(\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/;
const ago = /^(\d{1,6})([smhdw])$/;
const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** The forms of a time, for the help. */
export const timeForms = "30m, 1h or 2d ago, a day in UTC, or a time with its zone";

/** Reads an option that names a time, as ISO 8601 in UTC. The function throws InvalidArgumentError where it is none. */
export function timeReader({ nowMs }: Pick<CommandContext, "nowMs">): (text: string) => string {
  return (text) => {
    const [, count, unit = ""] = ago.exec(text) ?? [];
    const [, day] = isoTime.exec(text) ?? [];
    const timeMs =
      day !== undefined && isDay(day) ? Date.parse(text) : nowMs() - Number(count) * (unitMs[unit] ?? Number.NaN);
    if (timeMs >= 0) return new Date(timeMs).toISOString();
    throw new InvalidArgumentError(
      "It must be a time such as 2026-11-21T08:00:00Z, a day such as 2026-11-21, or a time ago such as 30m, 1h or 2d.",
    );
  };
}

/** Reads 30m or 2d as a time. The service reads anything else: a day is one of the partner's time zone. */
export function agoReader(context: Pick<CommandContext, "nowMs">): (text: string) => string {
  return (text) => (ago.test(text) ? timeReader(context)(text) : text);
}

/** Whether the calendar has a day of this form. JavaScript takes 30 February for 2 March. */
function isDay(text: string): boolean {
  const midnight = new Date(text);
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(text);
}

/** A day, without a time. */
export function readDay(text: string): string {
  if (/^\d{4}-\d\d-\d\d$/.test(text) && isDay(text)) return text;
  throw new InvalidArgumentError("It must be a day such as 2026-11-21.");
}

/** At most this many items of a list. */
export const limitOption = () =>
  new Option("--limit <n>", "at most this many").default(50).argParser(wholeNumber(1, 9_999_999));
/** The new file of what a command makes and shows only once. */
export const outOption = ["--out <file>", "write it to a new file that only you can read (0600)"] as const;
