import { Cooldown } from "../../bounded-map.ts";
import type { Clock } from "../../clock.ts";
import { ServiceError } from "../../errors.ts";
import type { PartnerId } from "../../ids.ts";
import type { CachedPartners } from "../../partners/directory.ts";
import type { Partner } from "../../partners/partner.ts";

/** Partners as a worker knows them, at most five seconds old. */
export interface PartnerSource {
  /** Undefined if unknown or too old. Then it is requested, and `partnerChanged` is called when it arrives. */
  cached(id: PartnerId): Partner | undefined;
}

export interface DeliveryPartnersParts {
  readonly directory: Pick<CachedPartners, "cached" | "find" | "watch">;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Its settings or keys cannot be read: reported once an hour, and at once if it could be read meanwhile. */
  readonly onUnreadable: (id: PartnerId, error: unknown) => void;
}

const requestEveryMs = 500;
const toldEveryMs = 3_600_000;
/** Of more that are unknown or unreadable, some are requested and reported more often. */
const partnersMax = 20_000;

/** The directory as delivery sees it: never waited for. One that is not known is requested, and told when it is. */
export class DeliveryPartners implements PartnerSource {
  readonly #parts: DeliveryPartnersParts;
  /** Those that are not known. */
  readonly #requested = new Cooldown<PartnerId>(requestEveryMs, partnersMax);
  /** Those that cannot be read. */
  readonly #told = new Cooldown<PartnerId>(toldEveryMs, partnersMax);
  #onChanged: (id: PartnerId) => void = () => undefined;

  constructor(parts: DeliveryPartnersParts) {
    this.#parts = parts;
  }

  /** @param onChanged called for a partner that has changed, or is known now */
  start(onChanged: (id: PartnerId) => void): void {
    this.#onChanged = onChanged;
    this.#parts.directory.watch(onChanged);
  }

  cached(id: PartnerId): Partner | undefined {
    const { directory, clock } = this.#parts;
    const partner = directory.cached(id);
    if (partner !== undefined) return partner;
    if (this.#requested.begin(id, clock.monotonicMs())) void this.#request(id);
    return undefined;
  }

  async #request(id: PartnerId): Promise<void> {
    const { directory, clock, onUnreadable } = this.#parts;
    try {
      const partner = await directory.find(id);
      this.#told.end(id);
      if (partner === undefined) return;
      this.#requested.end(id);
      this.#onChanged(id);
    } catch (error) {
      // The database is away: the directory says so.
      if (error instanceof ServiceError) return;
      if (this.#told.begin(id, clock.monotonicMs())) onUnreadable(id, error);
    }
  }
}
