import type { PartnerSource } from "../../packages/server/src/delivery/worker.ts";
import type { PartnerId } from "../../packages/server/src/ids.ts";
import type { Partner } from "../../packages/server/src/partners/partner.ts";
import type { Session } from "../database/database.ts";

const believedMs = 5_000;
const refreshMs = 3_000;
const againMs = 500;

interface Known {
  partner: Partner;
  readMs: number;
}

/** Partners as one worker knows them: at most five seconds old. */
export class SimulatedPartners implements PartnerSource {
  readonly #session: Session;
  readonly #onChanged: (id: PartnerId) => void;
  readonly #known = new Map<PartnerId, Known>();
  readonly #asking = new Set<PartnerId>();

  constructor(session: Session, onChanged: (id: PartnerId) => void) {
    this.#session = session;
    this.#onChanged = onChanged;
  }

  peek(id: PartnerId): Partner | undefined {
    const known = this.#known.get(id);
    const ageMs =
      known === undefined ? Number.POSITIVE_INFINITY : this.#session.loop.clock.monotonicMs() - known.readMs;
    if (ageMs > refreshMs) void this.#ask(id);
    return ageMs > believedMs ? undefined : known?.partner;
  }

  /** Whether the worker knows that it is paused. Unlike `peek` it asks for nothing. */
  isPaused(id: PartnerId): boolean {
    const known = this.#known.get(id);
    return known !== undefined && this.#isFresh(known) && known.partner.state === "paused";
  }

  #isFresh({ readMs }: Known): boolean {
    return this.#session.loop.clock.monotonicMs() - readMs <= believedMs;
  }

  /** A person changed it. */
  changed(id: PartnerId): void {
    void this.#ask(id);
  }

  async #ask(id: PartnerId): Promise<void> {
    if (this.#asking.has(id)) return;
    this.#asking.add(id);
    const sentMs = this.#session.loop.clock.monotonicMs();
    try {
      const partner = await this.#session.read(
        "partner",
        () => this.#session.tables.merchants.find((merchant) => merchant.id === id)?.partner,
      );
      this.#asking.delete(id);
      if (partner === undefined) return;
      const before = this.#known.get(id);
      const wasKnown = before !== undefined && this.#isFresh(before);
      this.#known.set(id, { partner, readMs: sentMs });
      if (before?.partner !== partner || !wasKnown) this.#onChanged(id);
    } catch {
      this.#session.loop.timers.after(againMs, () => {
        this.#asking.delete(id);
        this.peek(id);
      });
    }
  }
}
