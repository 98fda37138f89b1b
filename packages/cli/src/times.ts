import { InvalidArgumentError } from "commander";

/** A day, or a time with its offset from UTC. JavaScript alone takes "1" and "order-7" for times, too. */
const isoTime = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/;

/** The value of an option that names a time, as ISO 8601 in UTC. @throws InvalidArgumentError where it is none */
export function readTime(text: string): string {
  const timeMs = isoTime.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(timeMs)) return new Date(timeMs).toISOString();
  throw new InvalidArgumentError("It must be a time such as 2026-11-21T08:00:00Z, or a day such as 2026-11-21.");
}
