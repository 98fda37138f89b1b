import type { Keys } from "@paybell/partner";

/** A key with the name under which its owner knows it. */
export interface NamedKey {
  readonly name: string;
  /** The version's public id; empty if unknown. */
  readonly id: string;
  readonly raw: Buffer;
  /** The key as configured. */
  readonly text: string;
}

export interface NamedKeys {
  readonly encryption: readonly NamedKey[];
  readonly signing: readonly NamedKey[];
  readonly webhook: readonly NamedKey[];
}

/** For keys whose shape was checked. */
export function namedKeys(given: {
  readonly encryptionKey: Keys;
  readonly signingKey: Keys;
  readonly webhookSecret: Keys;
}): NamedKeys {
  return {
    encryption: versions("encryptionKey", given.encryptionKey),
    signing: versions("signingKey", given.signingKey),
    webhook: versions("webhookSecret", given.webhookSecret),
  };
}

function versions(name: string, keys: Keys): NamedKey[] {
  const list = typeof keys === "string" ? [{ key: keys }] : keys;
  return list.map((version, at) => ({
    name: list.length === 1 ? name : `${name}[${at}]`,
    id: "id" in version ? (version.id ?? "") : "",
    raw: Buffer.from(version.key.replace(/^whsec_/, ""), "base64"),
    text: version.key,
  }));
}
