import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";
import { idTimeMs } from "../ids.ts";
import type { Delivery } from "./store.ts";

/** The fields of a notification that nobody may change once its transaction is committed. */
export type FixedContent = Pick<Delivery, "partnerId" | "id" | "command" | "callBackUrl" | "content">;

/** SHA-256 truncated by RFC 2104: 128 bits cannot be guessed, and each row has them. */
const macBytes = 16;

/**
 * Shows that a notification is as it was committed: a session of the database does not have the key. Measured: 3.5 µs
 * for a card IPN.
 */
export class ContentMac {
  readonly #key: KeyObject;
  readonly #onChanged: (of: Pick<Delivery, "partnerId" | "id">) => void;
  #withoutBelowMs = Number.POSITIVE_INFINITY;

  /** @param onChanged called for each notification that is not as it was committed */
  constructor(key: KeyObject, onChanged: (of: Pick<Delivery, "partnerId" | "id">) => void) {
    this.#key = key;
    this.#onChanged = onChanged;
  }

  /** Only older notifications may be without a MAC: every instance writes them since this time. */
  requiredSince(atMs: number): void {
    this.#withoutBelowMs = Math.min(this.#withoutBelowMs, atMs);
  }

  of({ partnerId, id, command, callBackUrl, content }: FixedContent): Buffer {
    // The first four contain no line break.
    const text = `${partnerId}\n${id}\n${command}\n${callBackUrl ?? ""}\n${content}`;
    return createHmac("sha256", this.#key).update(text).digest().subarray(0, macBytes);
  }

  /** @param mac as stored; null: none */
  isAsCommitted(stored: FixedContent, mac: Buffer | null): boolean {
    const isRight =
      mac === null
        ? idTimeMs(stored.id) < this.#withoutBelowMs
        : mac.length === macBytes && timingSafeEqual(mac, this.of(stored));
    if (!isRight) this.#onChanged(stored);
    return isRight;
  }
}
