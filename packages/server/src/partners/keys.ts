import { hash, randomBytes } from "node:crypto";
import { hmacKey, type SealingKey, sealingKey, webhookKey } from "@paybell/contract";
import type { RotatedKind } from "./partner.ts";

const secretBytes = 32;
const apiKeyPrefix = "pb_";
const apiKeyShape = /^pb_[A-Za-z0-9_-]{43}$/;
const webhookPrefix = "whsec_";

/** A new secret: its bytes, and the text that the partner gets once. */
export interface NewSecret {
  readonly raw: Buffer;
  readonly text: string;
}

export function newSecret(kind: RotatedKind, random: (bytes: number) => Buffer = randomBytes): NewSecret {
  const raw = random(secretBytes);
  return { raw, text: secretText(kind, raw) };
}

function secretText(kind: RotatedKind, raw: Buffer): string {
  if (kind === "apiKey") return apiKeyPrefix + raw.toString("base64url");
  if (kind === "webhookSecret") return webhookPrefix + raw.toString("base64");
  return raw.toString("base64");
}

/** Whether a text has the shape of an API key: others need no look-up. */
export function isApiKey(text: string): boolean {
  return apiKeyShape.test(text);
}

/**
 * The stored form of an API key, which is also the look-up key. It has 256 random bits, so a plain SHA-256 cannot be
 * reversed by guessing, and a look-up by hash reveals nothing by its timing.
 */
export function apiKeyHash(apiKey: string): Buffer {
  return hash("sha256", apiKey, "buffer");
}

/** The KeyObject of a key version, created once: raw bytes as a key are up to seven times slower at each use. */
export function keyObject(kind: Exclude<RotatedKind, "apiKey">, id: string, raw: Buffer): SealingKey {
  if (kind === "encryptionKey") return sealingKey(id, raw);
  if (kind === "signingKey") return { id, key: hmacKey(raw) };
  return { id, key: webhookKey(secretText(kind, raw)) };
}
