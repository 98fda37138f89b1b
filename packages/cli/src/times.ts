import { InvalidArgumentError } from "commander";

/** The value of an option that names a time, as ISO 8601 in UTC. @throws InvalidArgumentError where it is none */
export function readTime(text: string): string {
  const timeMs = Date.parse(text);
  if (!Number.isNaN(timeMs)) return new Date(timeMs).toISOString();
  throw new InvalidArgumentError("It must be a time such as 2026-11-21T08:00:00Z, or a day such as 2026-11-21.");
}
