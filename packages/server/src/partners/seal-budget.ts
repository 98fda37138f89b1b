import { BoundedMap } from "../bounded-map.ts";
import type { PartnerId } from "../ids.ts";
import type { SealCounts } from "./store.ts";

/** Seals reserved in the database at a time: one statement for ten thousand IPNs. A crash loses at most this many. */
export const sealsReserved = 10_000;
/** A random 96-bit IV is safe with one AES-GCM key for 2^32 seals (NIST SP 800-38D, 8.3). */
export const sealsMax = 2 ** 32;
export const sealsAlert = 2 ** 31;
/** Reserve more when this many are left, so that no IPN waits for it. */
const refillBelow = sealsReserved / 5;
const keysRememberedMax = 10_000;

/** A key version has reached its maximum number of seals: the encryption key must be rotated. */
export class KeyExhausted extends Error {
  override readonly name = "KeyExhausted";
  readonly code = "key_exhausted";

  constructor(keyId: string) {
    super(`The encryption key version ${keyId} has sealed as often as AES-GCM allows (2^32): rotate encryptionKey.`);
  }
}

/** Nobody can count the seals of a key version that is not in the database: nothing is sealed with it. */
export class KeyMissing extends Error {
  override readonly name = "KeyMissing";

  constructor(keyId: string) {
    super(`There is no key version ${keyId} to count seals for.`);
  }
}

interface Reserve {
  left: number;
  exhausted: boolean;
  alerted: boolean;
  refilling: Promise<void> | undefined;
}

export type SealAlert = (alert: { partnerId: PartnerId; keyId: string; seals: number }) => void;

/**
 * Counts seals per version of an AES key. A block is added to the database's count before any of it is used: a crash
 * wastes the rest of it, and the count is never too low.
 */
export class SealBudget {
  readonly #counts: SealCounts;
  readonly #alert: SealAlert;
  readonly #reserves = new BoundedMap<string, Reserve>(keysRememberedMax);

  /** @param alert called once in this process for each key version that has reached 2^31 seals */
  constructor(counts: SealCounts, alert: SealAlert) {
    this.#counts = counts;
    this.#alert = alert;
  }

  /**
   * Spends one seal. It may be used when this returns, or when the returned promise resolves.
   *
   * @throws KeyExhausted at 2^32 seals, or KeyMissing, thrown or rejected; a rejection by the database may be retried.
   */
  spend(partnerId: PartnerId, keyId: string): undefined | Promise<void> {
    const reserve = this.#reserves.get(keyId) ?? this.#remember(keyId);
    if (reserve.left === 0) return this.#spendLater(reserve, partnerId, keyId);
    reserve.left -= 1;
    if (reserve.left < refillBelow && !reserve.exhausted && reserve.refilling === undefined) {
      // An early refill may fail: the awaited one tries again and reports.
      this.#refill(reserve, partnerId, keyId).catch(() => undefined);
    }
    return undefined;
  }

  async #spendLater(reserve: Reserve, partnerId: PartnerId, keyId: string): Promise<void> {
    while (reserve.left === 0) {
      if (reserve.exhausted) throw new KeyExhausted(keyId);
      await this.#refill(reserve, partnerId, keyId);
    }
    reserve.left -= 1;
  }

  #refill(reserve: Reserve, partnerId: PartnerId, keyId: string): Promise<void> {
    reserve.refilling ??= this.#reserve(reserve, partnerId, keyId).finally(() => {
      reserve.refilling = undefined;
    });
    return reserve.refilling;
  }

  async #reserve(reserve: Reserve, partnerId: PartnerId, keyId: string): Promise<void> {
    const seals = await this.#counts.addSeals(partnerId, keyId, sealsReserved);
    if (seals === undefined) throw new KeyMissing(keyId);
    if (seals > sealsMax) {
      reserve.exhausted = true;
      return;
    }
    reserve.left += sealsReserved;
    if (seals < sealsAlert || reserve.alerted) return;
    reserve.alerted = true;
    this.#alert({ partnerId, keyId, seals });
  }

  #remember(keyId: string): Reserve {
    const reserve: Reserve = { left: 0, exhausted: false, alerted: false, refilling: undefined };
    // The rest of the oldest reserve is lost: counted, never used.
    this.#reserves.set(keyId, reserve);
    return reserve;
  }
}
