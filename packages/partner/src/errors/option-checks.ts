// Not in misused.ts: a process that only receives loads none of it.
import { Misused, type MisusedReason } from "./misused.ts";

/** The rule for an argument or an option. */
export interface OptionRule {
  readonly allows: (value: unknown) => boolean;
  /** The allowed values. */
  readonly remedy: string;
  /** Default wrong_option. */
  readonly reason?: MisusedReason;
}

export const anObject: OptionRule = { allows: (value) => Object(value) === value, remedy: "Give an object: { … }." };

/** @throws Misused naming the value, and the allowed ones */
export function checkOption(
  name: string,
  value: unknown,
  { allows, remedy, reason = "wrong_option" }: OptionRule,
): void {
  refusePromise(name, value);
  if (!allows(value)) throw new Misused(reason, name, { meaning: `cannot be ${describe(value)}`, remedy });
}

/** @throws Misused if it is a Promise */
export function refusePromise(name: string, value: unknown): void {
  if (value instanceof Promise) throw new Misused("missing_await", name);
}

/** Short words are quoted. Values that may be a key or a card number are not. */
function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "this object";
  if (typeof value !== "string") return `a ${typeof value}`;
  return /^[A-Za-z_-]{1,24}$/.test(value) ? `"${value}"` : "this text";
}
