import type { Clock } from "../clock.ts";
import type { PartnerSource } from "../delivery/worker.ts";
import { ServiceError } from "../errors.ts";
import type { PartnerId } from "../ids.ts";
import type { CachedPartners } from "../partners/directory.ts";
import type { Partner } from "../partners/partner.ts";

export interface DeliveryPartnersParts {
  readonly directory: Pick<CachedPartners, "peek" | "find" | "watch">;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Its settings or keys cannot be read: reported once an hour, and at once if it could be read meanwhile. */
  readonly onUnreadable: (id: PartnerId, error: unknown) => void;
}

const requestEveryMs = 500;
const toldEveryMs = 3_600_000;

/** The directory as delivery sees it: never waited for. One that is not known is requested, and told when it is. */
export class DeliveryPartners implements PartnerSource {
  readonly #parts: DeliveryPartnersParts;
  /** When each one that is not known was requested. */
  readonly #requestedMs = new Map<PartnerId, number>();
  readonly #toldMs = new Map<PartnerId, number>();
  #onChanged: (id: PartnerId) => void = () => undefined;

  constructor(parts: DeliveryPartnersParts) {
    this.#parts = parts;
  }

  /** @param onChanged called for a partner that has changed, or is known now */
  start(onChanged: (id: PartnerId) => void): void {
    this.#onChanged = onChanged;
    this.#parts.directory.watch(onChanged);
  }

  peek(id: PartnerId): Partner | undefined {
    const { directory, clock } = this.#parts;
    const partner = directory.peek(id);
    if (partner !== undefined) return partner;
    const nowMs = clock.monotonicMs();
    if (nowMs - (this.#requestedMs.get(id) ?? Number.NEGATIVE_INFINITY) >= requestEveryMs) {
      this.#requestedMs.set(id, nowMs);
      void this.#request(id);
    }
    return undefined;
  }

  async #request(id: PartnerId): Promise<void> {
    const { directory, clock, onUnreadable } = this.#parts;
    try {
      const partner = await directory.find(id);
      this.#toldMs.delete(id);
      if (partner === undefined) return;
      this.#requestedMs.delete(id);
      this.#onChanged(id);
    } catch (error) {
      // The database is away: the directory says so.
      if (error instanceof ServiceError) return;
      const nowMs = clock.monotonicMs();
      if (nowMs - (this.#toldMs.get(id) ?? Number.NEGATIVE_INFINITY) < toldEveryMs) return;
      this.#toldMs.set(id, nowMs);
      onUnreadable(id, error);
    }
  }
}
