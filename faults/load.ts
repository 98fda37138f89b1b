import type { LoadParts } from "./load-parts.ts";
import type { RegisteredPartner } from "./partner.ts";
import type { SeededRandom } from "./random.ts";
import { Switch } from "./switch.ts";
import { PartnerTill } from "./till.ts";

const tillsOfPartner = 2;
const endsWithinMs = 60_000;

/** Switches that report in batches, and tills that ask for one command after the other, of every partner. */
export class FaultLoad {
  readonly refusals = new Map<string, number>();
  readonly #working: Promise<unknown>;
  #ending = false;
  #over = false;

  constructor(
    partners: readonly RegisteredPartner[],
    parts: Pick<LoadParts, "caller" | "journal" | "books" | "pace" | "operatorToken"> & { readonly batchSize: number },
    random: SeededRandom,
  ) {
    const shared: LoadParts = {
      ...parts,
      refusals: this.refusals,
      isEnding: () => this.#ending,
      isOver: () => this.#over,
    };
    this.#working = Promise.all(
      partners.flatMap((partner) => [
        new Switch(partner, shared, parts.batchSize, random.fork(`switch ${partner.index}`)).work(),
        ...Array.from({ length: tillsOfPartner }, (_, till) =>
          new PartnerTill(partner, till, shared, random.fork(`till ${partner.index} ${till}`)).work(),
        ),
      ]),
    );
    // end() reports bugs of the suite, instead of an unhandled rejection in the middle of a fault.
    this.#working.catch(() => undefined);
  }

  /** Resolves when everything that was begun has its answer. @returns whether it has */
  async end(): Promise<boolean> {
    this.#ending = true;
    const timer = setTimeout(() => {
      this.#over = true;
    }, endsWithinMs);
    await this.#working;
    clearTimeout(timer);
    return !this.#over;
  }
}
