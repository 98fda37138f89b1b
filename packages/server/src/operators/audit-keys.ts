import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";

/** The keys of the audit's MACs, by version, and the pepper of tokens' hashes. The database has none of them. */
export class AuditKeys {
  readonly #versions: readonly KeyObject[];
  readonly #pepper: KeyObject;

  /** @param versions the first is version 1; the last makes MACs, and all verify them */
  constructor(versions: readonly KeyObject[], pepper: KeyObject) {
    this.#versions = versions;
    this.#pepper = pepper;
  }

  /** The version, then HMAC-SHA256. */
  mac(text: string): Buffer {
    return this.#mac(this.#versions.length, text);
  }

  isRight(mac: Buffer, text: string): boolean {
    const [version = 0] = mac;
    if (version < 1 || version > this.#versions.length) return false;
    const right = this.#mac(version, text);
    return mac.length === right.length && timingSafeEqual(mac, right);
  }

  /** The stored form of a token's hash: a copy of the database does not tell whether a token is in it. */
  pepper(hash: Buffer): Buffer {
    return createHmac("sha256", this.#pepper).update(hash).digest();
  }

  #mac(version: number, text: string): Buffer {
    const key = this.#versions[version - 1];
    if (key === undefined) throw new Error(`There is no audit key of version ${version}.`);
    return Buffer.concat([Buffer.of(version), createHmac("sha256", key).update(text).digest()]);
  }
}

/** The text that an entry's MAC covers. Its hash covers every column, and the hash before. */
export function entryText(seq: number, hash: string): string {
  return `audit entry\n${seq}\n${hash}`;
}
