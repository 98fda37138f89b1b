import type { Clock } from "../clock.ts";
import { ServiceError } from "../errors.ts";
import type { PartnerId } from "../ids.ts";
import type { PartnerStates } from "./store.ts";

/** The time for which an unknown key is cached as unknown; a key just registered was never looked up before. */
const unknownForMs = 2_000;
const rememberedMax = 20_000;
/** Maximum number of callers with unknown keys that wait for the database. */
const waitingMax = 1_000;

interface Question {
  readonly hash: Buffer;
  readonly resolve: (owner: PartnerId | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Finds the partner that a hash of an API key belongs to, or ever belonged to: that never changes, so it is cached.
 * Whether the key is still valid is in the partner's snapshot. All callers during a query share the next one.
 */
export class ApiKeyOwners {
  readonly #store: PartnerStates;
  readonly #clock: Clock;
  readonly #owners = new Map<string, PartnerId>();
  readonly #unknownSince = new Map<string, number>();
  #waiting: Question[] = [];
  #asking = false;

  constructor(store: PartnerStates, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** The owner, if it was found before. */
  peek(hash: Buffer): PartnerId | undefined {
    return this.#owners.get(hash.toString("hex"));
  }

  /** @throws ServiceError `unavailable`, rejected */
  async find(hash: Buffer): Promise<PartnerId | undefined> {
    const owner = this.peek(hash);
    if (owner !== undefined) return owner;
    const unknownSince = this.#unknownSince.get(hash.toString("hex"));
    if (unknownSince !== undefined && this.#clock.monotonicMs() - unknownSince <= unknownForMs) return undefined;
    if (this.#waiting.length >= waitingMax) throw new ServiceError("unavailable", undefined, { retryAfterS: 2 });
    return await new Promise((resolve, reject) => {
      this.#waiting.push({ hash, resolve, reject });
      if (!this.#asking) void this.#ask();
    });
  }

  async #ask(): Promise<void> {
    this.#asking = true;
    while (this.#waiting.length > 0) {
      const questions = this.#waiting;
      this.#waiting = [];
      try {
        const owners = await this.#store.partnersByApiKey(questions.map((question) => question.hash));
        for (const question of questions) question.resolve(this.#learn(question.hash.toString("hex"), owners));
      } catch (error) {
        const unavailable = new ServiceError("unavailable", undefined, { retryAfterS: 2, cause: error });
        for (const question of questions) question.reject(unavailable);
      }
    }
    this.#asking = false;
  }

  #learn(hex: string, owners: ReadonlyMap<string, PartnerId>): PartnerId | undefined {
    const owner = owners.get(hex);
    if (owner === undefined) remember(this.#unknownSince, hex, this.#clock.monotonicMs());
    else remember(this.#owners, hex, owner);
    return owner;
  }
}

function remember<Value>(known: Map<string, Value>, hex: string, value: Value): void {
  known.delete(hex);
  known.set(hex, value);
  const [oldest] = known.keys();
  if (known.size > rememberedMax && oldest !== undefined) known.delete(oldest);
}
