import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";
import { idTimeMs } from "../../ids.ts";
import type { Delivery } from "../delivery.ts";

/** The fields of a notification that nobody may change once its transaction is committed. */
export type FixedContent = Pick<
  Delivery,
  "partnerId" | "id" | "command" | "callBackUrl" | "content" | "originalId" | "originalExternalId"
>;

/** SHA-256 truncated by RFC 2104: 128 bits cannot be guessed, and each row has them. */
const macBytes = 16;

/** Begins a MAC that covers the original too. Those of 16 bytes do not: nobody without the key can make one of them. */
const withOriginal = Buffer.of(2);

/** Shows that a notification is as it was committed: a session of the database does not have the key. */
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

  of(content: FixedContent): Buffer {
    const { originalId, originalExternalId: switchId = null } = content;
    // A switch's id may contain a line break. With one, `originalId` is only what it was found to be.
    const original = switchId === null ? (originalId ?? "") : JSON.stringify(switchId);
    return Buffer.concat([withOriginal, this.#hmac(`2\n${original}\n${ownText(content)}`)]);
  }

  /** @param mac as stored; null: none */
  isAsCommitted(stored: FixedContent, mac: Buffer | null): boolean {
    const isRight =
      mac === null
        ? idTimeMs(stored.id) < this.#withoutBelowMs
        : areEqual(mac, mac.length === macBytes ? this.#hmac(ownText(stored)) : this.of(stored));
    if (!isRight) this.#onChanged(stored);
    return isRight;
  }

  #hmac(text: string): Buffer {
    return createHmac("sha256", this.#key).update(text).digest().subarray(0, macBytes);
  }
}

/** The first four contain no line break. */
function ownText({ partnerId, id, command, callBackUrl, content }: FixedContent): string {
  return `${partnerId}\n${id}\n${command}\n${callBackUrl ?? ""}\n${content}`;
}

function areEqual(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}
