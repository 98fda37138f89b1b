import type { Caller } from "./caller.ts";
import type { ExpectedTotals } from "./expected-totals.ts";
import type { Journal } from "./journal.ts";
import type { Pace } from "./pace.ts";

/** The parts shared by everything that sends commands. */
export interface LoadParts {
  readonly caller: Caller;
  readonly journal: Journal;
  readonly books: ExpectedTotals;
  readonly pace: Pace;
  readonly operatorToken: string;
  /** Refusals, by request and reason. */
  readonly refusals: Map<string, number>;
  /** No further command is begun; those that were are brought to an end. */
  isEnding(): boolean;
  /** Not even those: what has no answer by now gets none. */
  isOver(): boolean;
}

export function countRefusal({ refusals }: LoadParts, what: string, code: unknown): void {
  const name = `${what} ${String(code)}`;
  refusals.set(name, (refusals.get(name) ?? 0) + 1);
}
