import { BoundedMap } from "../bounded-map.ts";
import type { Clock } from "../clock.ts";

export interface EndedSessionStore {
  /** Ending one twice changes nothing. */
  add(id: Buffer, endsAtMs: number): Promise<void>;
  has(id: Buffer): Promise<boolean>;
}

/** Another instance refuses an ended session after this time at the latest. */
const knownForMs = 2_000;
const knownMax = 10_000;

/** Sessions of the console that were ended by a sign-out, on any instance. */
export class EndedSessions {
  readonly #store: EndedSessionStore;
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** Sessions that had not ended: until when that is believed. */
  readonly #openUntilMs = new BoundedMap<string, number>(knownMax);

  constructor(store: EndedSessionStore, clock: Pick<Clock, "monotonicMs">) {
    this.#store = store;
    this.#clock = clock;
  }

  /** @param endsAtMs when the last copy of its cookie expires */
  async add(id: Buffer, endsAtMs: number): Promise<void> {
    await this.#store.add(id, endsAtMs);
    this.#openUntilMs.delete(id.toString("hex"));
  }

  async has(id: Buffer): Promise<boolean> {
    const key = id.toString("hex");
    const nowMs = this.#clock.monotonicMs();
    if ((this.#openUntilMs.get(key) ?? Number.NEGATIVE_INFINITY) > nowMs) return false;
    const hasEnded = await this.#store.has(id);
    if (hasEnded) return true;
    this.#openUntilMs.set(key, nowMs + knownForMs);
    return false;
  }
}
