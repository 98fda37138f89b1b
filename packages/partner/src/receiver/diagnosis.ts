import type { Buffer } from "node:buffer";
import type { KeyObject } from "node:crypto";
import {
  type FieldSet,
  fieldSets,
  headerNames,
  NotAuthentic,
  openAndVerify,
  type Sealing,
  type SealingKey,
  type Signing,
  sealings,
  webhookSignatureMatches,
} from "@paybell/contract/receiving";
import { IpnRefused, type RefusedReason } from "../errors/refused.ts";
import type { HeaderReader } from "./headers.ts";
import { namedAsIn } from "./keys.ts";

/** The configuration of a receiver. */
export interface Setup {
  readonly sealing: Sealing;
  readonly signing: Signing;
  readonly fields: readonly FieldSet[];
  readonly encryption: readonly SealingKey[];
  readonly signingKeys: readonly KeyObject[];
  readonly webhook: readonly KeyObject[];
}

/** Longer bodies are not tried with other settings: refusing a body must not cost more than sending it. */
const triedBytesMax = 1024 * 1024;

/**
 * Explains a wrong webhook-signature that is not a forgery. The cost is the same for every forgery, and reveals nothing
 * to its sender.
 */
export function explainHeaders(body: Buffer, header: HeaderReader, { encryption, signingKeys, webhook }: Setup) {
  const mistake = bodyMistake(body);
  if (mistake !== undefined) return new IpnRefused(mistake);
  if (body.length > triedBytesMax) return new IpnRefused("webhook_signature");
  const matches = (text: Buffer | string, keys: readonly KeyObject[]) =>
    webhookSignatureMatches(
      header(headerNames.signature) ?? "",
      header(headerNames.id) ?? "",
      header(headerNames.timestamp) ?? "",
      text,
      keys,
    );
  const data = dataOf(body.toString("utf8"));
  if (data !== undefined && matches(JSON.stringify({ data }), webhook)) return new IpnRefused("rewritten_body");
  for (const [option, keys] of [
    ["encryptionKey", encryption.map(({ key }) => key)],
    ["signingKey", signingKeys],
  ] as const) {
    if (matches(body, keys))
      return new IpnRefused("swapped_keys", `webhook-signature is made with what you gave as ${option}.`);
  }
  return new IpnRefused("webhook_signature");
}

/** Returns the mistake that the body itself shows, whatever its sender. */
export function bodyMistake(body: Buffer): RefusedReason | undefined {
  if (body.length === 0) return "empty_body";
  if (body[0] === 0x1f && body[1] === 0x8b) return "compressed_body";
  const start = body.toString("latin1", 0, 64).trimStart();
  if (start.startsWith("<")) return "html_body";
  if (start.startsWith("[object ") || start.startsWith('"')) return "stringified_body";
  return undefined;
}

/** The body is not authenticated, so it is parsed as JSON only if it can contain nothing but `data`. */
function dataOf(body: string): unknown {
  const data = /^\s*\{\s*"data"\s*:\s*("[^"]*")\s*\}\s*$/.exec(body)?.[1];
  try {
    return data === undefined ? undefined : JSON.parse(data);
  } catch {
    return undefined;
  }
}

/** Explains why an IPN from the holder of the webhook secret cannot be opened: another setting may fit. */
export function explainContent(body: string, reason: RefusedReason, setup: Setup): IpnRefused | undefined {
  if (body.length > triedBytesMax) return undefined;
  return reason === "signature" ? explainSignature(body, setup) : explainSeal(body, setup);
}

function explainSeal(body: string, setup: Setup): IpnRefused | undefined {
  const { sealing, encryption, signingKeys, webhook } = setup;
  for (const tried of sealings) {
    const { cipher, encoding } = tried;
    if (!opens(body, { ...setup, sealing: tried }, encryption)) continue;
    if (cipher !== sealing.cipher)
      return new IpnRefused("wrong_cipher", `cipher is ${sealing.cipher}, and it is sealed with ${cipher}.`);
    if (encoding !== sealing.encoding && cipher !== "jwe")
      return new IpnRefused("wrong_encoding", `encoding is ${sealing.encoding}, and data is ${encoding}.`);
  }
  for (const [option, keys] of [
    ["signingKey", signingKeys],
    ["webhookSecret", webhook],
  ] as const) {
    if (
      opens(
        body,
        setup,
        keys.map((key) => ({ id: "", key })),
      )
    )
      return new IpnRefused("swapped_keys", `It opens with what you gave as ${option}.`);
  }
  return undefined;
}

function explainSignature(body: string, setup: Setup): IpnRefused | undefined {
  const { encryption, webhook, fields } = setup;
  const [other] = fieldSets.filter((one) => !fields.includes(one));
  if (other !== undefined && tryOpening(body, { ...setup, fields: [other] }, encryption) === "opened")
    return new IpnRefused("wrong_fields", `fields is ${fields.join()}, and it is signed as fields: "${other}" says.`);
  for (const signing of [{ mode: "whole" }, { mode: "fields" }] as const) {
    if (tryOpening(body, { ...setup, signing, fields: fieldSets }, encryption) === "opened")
      return new IpnRefused("wrong_signing", `It is signed as signing: { mode: "${signing.mode}" } says.`);
  }
  for (const [option, signingKeys] of [
    ["encryptionKey", encryption.map(({ key }) => key)],
    ["webhookSecret", webhook],
  ] as const) {
    if (tryOpening(body, { ...setup, signingKeys }, encryption) === "opened")
      return new IpnRefused("swapped_keys", `It is signed with what you gave as ${option}.`);
  }
  return undefined;
}

/** AES-CBC decrypts under one wrong key in 256, to content that is not JSON. */
function opens(body: string, setup: Setup, keys: readonly SealingKey[]): boolean {
  const tried = tryOpening(body, setup, keys);
  return tried === "opened" || tried === "signature";
}

function tryOpening(
  body: string,
  { sealing, signing, fields, signingKeys }: Setup,
  encryptionKeys: readonly SealingKey[],
) {
  try {
    const named = sealing.cipher === "jwe" ? namedAsIn(body, encryptionKeys) : encryptionKeys;
    openAndVerify(body, { sealing, signing, fields, signingKeys, encryptionKeys: named });
    return "opened";
  } catch (error) {
    if (error instanceof NotAuthentic) return error.reason;
    throw error;
  }
}
