import { InvalidArgumentError } from "commander";
import type { CommandContext } from "./context.ts";

/** A day, or a time with its offset from UTC. JavaScript alone takes "1" and "order-7" for times, too. */
const isoTime = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/;
const ago = /^(\d{1,6})([smhdw])$/;
const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** The forms of a time, for the help. */
export const timeForms = "30m, 1h or 2d ago, a day, or a time with its zone";

/** Reads an option that names a time, as ISO 8601 in UTC. The function throws InvalidArgumentError where it is none. */
export function timeReader({ nowMs }: Pick<CommandContext, "nowMs">): (text: string) => string {
  return (text) => {
    const [, count, unit = ""] = ago.exec(text) ?? [];
    const timeMs = isoTime.test(text) ? Date.parse(text) : nowMs() - Number(count) * (unitMs[unit] ?? Number.NaN);
    if (timeMs >= 0) return new Date(timeMs).toISOString();
    throw new InvalidArgumentError(
      "It must be a time such as 2026-11-21T08:00:00Z, a day such as 2026-11-21, or how long ago, such as 30m, 1h or 2d.",
    );
  };
}

/** How long ago becomes a time; anything else is left to the service, which reads days in the partner's time zone. */
export function agoReader(context: Pick<CommandContext, "nowMs">): (text: string) => string {
  return (text) => (ago.test(text) ? timeReader(context)(text) : text);
}

/** A day, without a time. */
export function readDay(text: string): string {
  if (/^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))) return text;
  throw new InvalidArgumentError("It must be a day such as 2026-11-21.");
}
