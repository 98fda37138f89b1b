import { NotAuthentic, open, type Sealing, sealingKey, sealings } from "@paybell/contract";
import type { Keys, ReceiverOptions } from "@paybell/partner";
import { jsonIn } from "../shell/files.ts";

/** One step of opening: what was found, and what to do where it is wrong. */
export interface OpenFinding {
  readonly step: "body" | "headers" | "freshness" | "seal" | "content" | "signature";
  /** `note`: does not decide whether it is authentic. */
  readonly level: "right" | "note" | "wrong";
  readonly text: string;
  readonly remedy?: string;
}

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
export function namedKeys(given: Pick<ReceiverOptions, "encryptionKey" | "signingKey" | "webhookSecret">): NamedKeys {
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

interface Unsealed {
  readonly finding: OpenFinding;
  /** Undefined where nothing opened it. */
  readonly content: string | undefined;
}

interface Try {
  readonly sealing: Sealing;
  readonly key: NamedKey;
  readonly data: string;
}

/** Opens as configured; if that fails, searches for the cipher, encoding or key that works. */
export function unseal(data: string, configured: Sealing, keys: NamedKeys, named: string | undefined): Unsealed {
  const asAgreed = keys.encryption.map((key) => ({ sealing: configured, key, data }));
  for (const one of asAgreed) {
    const content = tryToOpen(one);
    if (content === undefined) continue;
    const text = `${sealingText(configured)}, opened with ${keyText(one.key, named)}`;
    return { content, finding: { step: "seal", level: "right", text } };
  }
  for (const one of otherTries(data, configured, keys)) {
    const content = tryToOpen(one);
    if (content === undefined) continue;
    const text = `does not open as ${sealingText(configured)}, but as ${sealingText(one.sealing)} with ${one.key.name}`;
    return { content, finding: { step: "seal", level: "wrong", text, remedy: remedyOf(one, configured, keys, data) } };
  }
  return { content: undefined, finding: unopened(data, configured, named) };
}

function tryToOpen({ sealing, key, data }: Try): string | undefined {
  try {
    // A key without an id is tried for any name in the message.
    const { text } = open(data, sealing, [sealingKey(kidOf(data) ?? key.id, key.raw)]);
    // One wrong key in 256 opens AES-CBC to something.
    return text.trimStart().startsWith("{") ? text : undefined;
  } catch (error) {
    if (error instanceof NotAuthentic) return undefined;
    throw error;
  }
}

function* otherTries(data: string, configured: Sealing, keys: NamedKeys): Generator<Try> {
  const tried = [configured, ...sealings];
  const texts = [data, data.replaceAll(/\s/g, ""), data.replaceAll(" ", "+")];
  const all = [...keys.encryption, ...keys.signing, ...keys.webhook];
  for (const key of all)
    for (const sealing of tried) for (const text of new Set(texts)) yield { key, sealing, data: text };
}

function remedyOf({ sealing, key, data }: Try, configured: Sealing, keys: NamedKeys, captured: string): string {
  const changes = [
    ...(keys.encryption.includes(key) ? [] : [`the keys are swapped: give what you call ${key.name} as encryptionKey`]),
    ...(sealing.cipher === configured.cipher ? [] : [`set cipher to ${sealing.cipher}`]),
    ...(sealing.cipher === "jwe" || sealing.encoding === configured.encoding
      ? []
      : [`set encoding to ${sealing.encoding}`]),
    ...(data === captured
      ? []
      : ["data lost or gained characters on its way: a + became a space, or lines were broken"]),
  ];
  const text = changes.join("; ");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function unopened(data: string, configured: Sealing, named: string | undefined): OpenFinding {
  const looks = looksLike(data, configured);
  const key = named === undefined || named === "" ? "" : ` The message names the key version ${JSON.stringify(named)}.`;
  return {
    step: "seal",
    level: "wrong",
    text: `no key opens it, whatever the cipher and encoding${looks}`,
    remedy:
      `Compare encryptionKey with the one that registration or the last rotation gave.${key} Is it the body as it ` +
      "was sent? One changed character is enough.",
  };
}

function looksLike(data: string, { encoding }: Sealing): string {
  if (data.length < 38) return "; it is too short for any IPN";
  if (/^ey[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]+$/.test(data)) return "; it looks like a JWE";
  if (/^[0-9a-fA-F]+$/.test(data)) return "; it looks like hex";
  return /[^A-Za-z0-9+/=_-]/.test(data) ? `; it has characters that ${encoding} does not have` : "";
}

function sealingText({ cipher, encoding }: Sealing): string {
  return cipher === "jwe" ? "jwe" : `${cipher}, ${encoding}`;
}

function keyText({ name, id }: NamedKey, named: string | undefined): string {
  const version = named ?? id;
  return version === "" ? name : `${name} (version ${version.slice(0, 64)})`;
}

/** The key version that a JWE names; undefined if it is not a JWE. */
export function kidOf(data: string): string | undefined {
  const [header = ""] = data.split(".", 1);
  if (header === data) return undefined;
  const { kid } = Object(jsonIn(Buffer.from(header, "base64url").toString("utf8"))) as { kid?: unknown };
  return typeof kid === "string" ? kid : undefined;
}
