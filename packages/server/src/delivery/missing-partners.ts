import type { PartnerId } from "../ids.ts";

/** Partners that were requested and did not arrive: they or their keys cannot be read. */
export class MissingPartners {
  #unknown: ReadonlySet<PartnerId> = new Set();
  #missing: ReadonlySet<PartnerId> = new Set();

  has(partnerId: PartnerId): boolean {
    return this.#missing.has(partnerId);
  }

  /** Called at each tick. @param unknown those unknown now; they are missing if they were at the last tick, too */
  look(unknown: readonly PartnerId[]): readonly PartnerId[] {
    const missing = unknown.filter((partnerId) => this.#unknown.has(partnerId));
    this.#unknown = new Set(unknown);
    this.#missing = new Set(missing);
    return missing;
  }
}
