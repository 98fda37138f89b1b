import type { KeyObject } from "node:crypto";
import {
  decrypt,
  keysFor,
  parseSealed,
  type Sealing,
  type SealingKey,
  type Undecrypted,
} from "../cryptography/sealing.ts";
import { type Signing, signatureMatches, signedString } from "../cryptography/signing.ts";
import { NotAuthentic, type NotAuthenticReason } from "../errors.ts";
import type { FieldSet } from "../fields/columns.ts";
import { afterSpace, endOfString } from "../json/parse-json.ts";
import { parseStrictly } from "../json/strict-json.ts";
import { hasExtension, readWire, type WireIpn } from "./read-wire.ts";

/** An IPN that was decrypted and whose signature was verified. */
export interface OpenedIpn extends WireIpn {
  /** The public id of the encryption key that opened it. */
  readonly keyId: string;
  /** The text whose signature was verified: section 5.1. */
  readonly signedText: string;
  /** The fields that it has, as its signature says. */
  readonly fields: FieldSet;
}

export interface Opening {
  readonly sealing: Sealing;
  readonly signing: Signing;
  /**
   * The fields that were agreed on; both while the agreement changes. The agreement decides, and never the presence of
   * a field, because a forger could add or remove one. Default: the specification's.
   */
  readonly fields?: readonly FieldSet[];
  /** The current version first, then the versions still accepted during a rotation. */
  readonly encryptionKeys: readonly SealingKey[];
  readonly signingKeys: readonly KeyObject[];
}

/**
 * Opens and verifies a POSTed body, `{"data": "…"}`: sections 2.1 and 5.
 *
 * @throws NotAuthentic for anything that is not sealed and signed as agreed, always in the same way.
 */
export function openAndVerify(body: string, how: Opening): OpenedIpn {
  const opened = tryToOpen(body, how);
  if (typeof opened === "string") throw new NotAuthentic(opened);
  return opened;
}

function tryToOpen(body: string, how: Opening): OpenedIpn | NotAuthenticReason {
  if (typeof body !== "string") return "envelope";
  const data = envelopeData(body);
  if (data === undefined) return "envelope";
  const sealed = parseSealed(data, how.sealing);
  if (typeof sealed === "string") return sealed;
  const keys = keysFor(sealed, how.encryptionKeys);
  let reason: NotAuthenticReason = keys.length === 0 ? "unknown_key" : "decryption";
  for (const key of keys) {
    const opened = decrypt(sealed, key);
    // AES-CBC decrypts under one wrong key in 256: only the signature identifies the right key.
    const verified = "text" in opened ? verify(opened.text, key.id, how) : refuse(opened, key.id, how);
    if (typeof verified !== "string") return verified;
    if (verified !== "decryption") reason = verified;
  }
  return reason;
}

/** Wrong padding of AES-CBC takes the same steps as right padding. */
function refuse({ refused, badlyPadded: spoiled }: Undecrypted, keyId: string, how: Opening): NotAuthenticReason {
  if (spoiled !== undefined) verify(spoiled, keyId, how);
  return refused;
}

function verify(text: string, keyId: string, how: Opening): OpenedIpn | NotAuthenticReason {
  // The extended ones first: with the whole IPN signed, the specification's would match their signature too.
  const agreed = how.fields?.includes("extended") ? how.fields.toSorted() : specificationOnly;
  for (const fields of agreed) {
    const read = readWire(text, fields);
    if (typeof read === "string") return read;
    const { kind, wire, ipn } = read;
    if (fields === "extended" && !hasExtension(kind, wire)) continue;
    const signedText = signedString(kind, wire, how.signing, fields);
    const matches = how.signingKeys.some((key) => signatureMatches(signedText, ipn.signature, key));
    if (matches) return { kind, wire, ipn, keyId, signedText, fields };
  }
  return "signature";
}

const specificationOnly: readonly FieldSet[] = ["specification"];

const envelopeStart = '{"data":"';
const envelopeEnd = '"}';

/** Exactly one field, `data`, a string: section 2.1. */
function envelopeData(body: string): string | undefined {
  // As JSON.stringify writes it. The value contains neither a quote nor a backslash, so the string ends where it seems
  // to.
  if (body.startsWith(envelopeStart) && body.endsWith(envelopeEnd)) {
    const data = body.slice(envelopeStart.length, -envelopeEnd.length);
    if (!data.includes('"') && !data.includes("\\")) return data;
  }
  if (!isPairOfTexts(body)) return undefined;
  const parsed = parseStrictly(body);
  if ("refused" in parsed || typeof parsed.value !== "object" || parsed.value === null) return undefined;
  const { data } = parsed.value as Record<string, unknown>;
  return typeof data === "string" ? data : undefined;
}

/**
 * Whether a JSON text can only be an object with one key and a string value. The body is not authenticated yet: parsing
 * arbitrary JSON in order to refuse it took up to 15 s and 1 GB for 16 MB (measured).
 */
function isPairOfTexts(body: string): boolean {
  const key = afterSpace(body, 0) + 1;
  if (body[key - 1] !== "{") return false;
  const colon = afterText(body, key);
  if (colon === undefined || body[colon] !== ":") return false;
  const close = afterText(body, colon + 1);
  return close !== undefined && body[close] === "}" && afterSpace(body, close + 1) === body.length;
}

/** Returns the index after a string and the white space around it; undefined if there is no string. */
function afterText(body: string, from: number): number | undefined {
  const start = afterSpace(body, from);
  if (body[start] !== '"') return undefined;
  const end = endOfString(body, start);
  return end === 0 ? undefined : afterSpace(body, end);
}
