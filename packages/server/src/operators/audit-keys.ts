import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";

export interface AuditKeyVersion {
  readonly key: KeyObject;
  /** Every instance knows it by then. */
  readonly usedFromMs: number;
}

/** The keys of the audit's MACs, by version, and the pepper of tokens' hashes. The database has none of them. */
export class AuditKeys {
  #versions: readonly AuditKeyVersion[];
  readonly #pepper: KeyObject;
  readonly #nowMs: () => number;

  /** @param versions the first is version 1; the last that is used by now makes MACs, and all verify them */
  constructor(versions: readonly AuditKeyVersion[], pepper: KeyObject, nowMs: () => number) {
    this.#versions = versions;
    this.#pepper = pepper;
    this.#nowMs = nowMs;
  }

  /** A rotation added versions. */
  learn(versions: readonly AuditKeyVersion[]): void {
    this.#versions = versions;
  }

  /** The version, then HMAC-SHA256. @param after an earlier MAC of the chain: a later one has no lower version */
  mac(text: string, after: Buffer | null = null): Buffer {
    const nowMs = this.#nowMs();
    const used = this.#versions.findLastIndex(({ usedFromMs }) => usedFromMs <= nowMs) + 1;
    const earlier = versionOf(after);
    return this.#mac(earlier <= this.#versions.length ? Math.max(used, earlier) : used, text);
  }

  /** @param after an earlier MAC of the chain: the key of an older version cannot continue it */
  isRight(mac: Buffer, text: string, after: Buffer | null = null): boolean {
    const version = versionOf(mac);
    if (version < Math.max(1, versionOf(after)) || version > this.#versions.length) return false;
    const right = this.#mac(version, text);
    return mac.length === right.length && timingSafeEqual(mac, right);
  }

  /** The stored form of a token's hash: a copy of the database does not tell whether a token is in it. */
  pepper(hash: Buffer): Buffer {
    return createHmac("sha256", this.#pepper).update(hash).digest();
  }

  #mac(version: number, text: string): Buffer {
    const of = this.#versions[version - 1];
    if (of === undefined) throw new Error(`There is no audit key of version ${version}.`);
    return Buffer.concat([Buffer.of(version), createHmac("sha256", of.key).update(text).digest()]);
  }
}

function versionOf(mac: Buffer | null): number {
  return mac?.[0] ?? 0;
}

/** The text that an entry's MAC covers. Its hash covers every column, and the hash before. */
export function entryText(seq: number, hash: string): string {
  return `audit entry\n${seq}\n${hash}`;
}
