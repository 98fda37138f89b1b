import { Misused, type MisusedReason } from "./misused.ts";

/** What an argument or an option must be. */
export interface OptionRule {
  readonly allows: (value: unknown) => boolean;
  /** What is allowed. */
  readonly remedy: string;
  /** Default wrong_option. */
  readonly reason?: MisusedReason;
}

/** @throws Misused naming what was given, and what is allowed */
export function checkOption(
  name: string,
  value: unknown,
  { allows, remedy, reason = "wrong_option" }: OptionRule,
): void {
  refusePromise(name, value);
  if (!allows(value)) throw new Misused(reason, name, { meaning: `cannot be ${describe(value)}`, remedy });
}

/** @throws Misused naming what is a Promise */
export function refusePromise(name: string, value: unknown): void {
  if (value instanceof Promise) throw new Misused("missing_await", name);
}

/** A short word is named; what may be a key or a card number is not. */
function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "this object";
  if (typeof value !== "string") return `a ${typeof value}`;
  return /^[A-Za-z_-]{1,24}$/.test(value) ? `"${value}"` : "this text";
}
