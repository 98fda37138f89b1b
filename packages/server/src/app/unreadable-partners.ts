import { systemClock } from "../clock.ts";
import { ServiceError } from "../errors.ts";
import type { PartnerId } from "../ids.ts";

const toldEveryMs = 3_600_000;

/**
 * Reports partners that cannot be read, each once an hour, and at once if it could be read meanwhile. An unavailable
 * database is not reported here.
 */
export class UnreadablePartners {
  readonly #report: (id: PartnerId, error: unknown) => void;
  readonly #nowMs: () => number;
  readonly #toldMs = new Map<PartnerId, number>();

  constructor(tell: (id: PartnerId, error: unknown) => void, nowMs = () => systemClock.monotonicMs()) {
    this.#report = tell;
    this.#nowMs = nowMs;
  }

  async watch<Result>(id: PartnerId, found: Promise<Result>): Promise<Result> {
    try {
      const result = await found;
      this.#toldMs.delete(id);
      return result;
    } catch (error) {
      const nowMs = this.#nowMs();
      const isNew = nowMs - (this.#toldMs.get(id) ?? Number.NEGATIVE_INFINITY) >= toldEveryMs;
      if (!(error instanceof ServiceError) && isNew) {
        this.#toldMs.set(id, nowMs);
        this.#report(id, error);
      }
      throw error;
    }
  }
}
