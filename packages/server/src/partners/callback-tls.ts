import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import type { FieldProblem } from "../errors.ts";
import { invalid, tooLong } from "./problems.ts";

/** Bounds of the TLS settings of a partner's callbacks. */
export const callbackTlsBounds = { caCharactersMax: 65_536, caCountMax: 20, pinsMax: 10, portsMax: 20 } as const;

const pinShape = /^sha256\/[A-Za-z0-9+/]{43}=$/;
const certificateShape = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;
const clientCharactersMax = 65_536;

/** Checks PEM certificates of CAs. */
export function callbackCaProblems(field: string, value: unknown): FieldProblem[] {
  if (value === null) return [];
  const { caCharactersMax, caCountMax } = callbackTlsBounds;
  if (typeof value !== "string") return [invalid(field, "must be PEM certificates, or null")];
  if (value.length > caCharactersMax) {
    return [tooLong(field, `has over ${caCharactersMax} characters`)];
  }
  if (value.includes("PRIVATE KEY-----")) return [invalid(field, "must not hold a private key: it is shown")];
  // There may be any other text beside the certificates, but the database cannot hold these two.
  const isStorable = value.isWellFormed() && !value.includes("\0");
  const certificates = isStorable ? readCertificates(value) : undefined;
  if (certificates === undefined) return [invalid(field, "must be PEM certificates, or null")];
  if (certificates.length > caCountMax) return [invalid(field, `must hold at most ${caCountMax} certificates`)];
  return certificates.every(({ ca }) => ca) ? [] : [invalid(field, "must hold certificates of authorities alone")];
}

export function callbackPinProblems(field: string, value: unknown): FieldProblem[] {
  const { pinsMax } = callbackTlsBounds;
  if (!Array.isArray(value) || value.length > pinsMax)
    return [invalid(field, `must be a list of at most ${pinsMax} pins`)];
  return value.flatMap((pin: unknown, at) =>
    typeof pin === "string" && pinShape.test(pin)
      ? []
      : [invalid(`${field}[${at}]`, "must be sha256/ and the base64 of a public key's SHA-256 (its SPKI)")],
  );
}

export function callbackPortProblems(field: string, value: unknown): FieldProblem[] {
  if (value === null) return [];
  const { portsMax } = callbackTlsBounds;
  const isPort = (port: unknown) => Number.isInteger(port) && Number(port) >= 1 && Number(port) <= 65_535;
  return Array.isArray(value) && value.length > 0 && value.length <= portsMax && value.every(isPort)
    ? []
    : [invalid(field, `must be null, or a list of 1 to ${portsMax} ports`)];
}

/** The client certificate that Paybell presents to a partner's server, and its key: PEM. */
export interface ClientCertificateInput {
  /** It comes first; its issuers may follow. */
  readonly certificate: string;
  readonly key: string;
}

/** Checks it; no problem repeats any of it. */
export function clientCertificateProblems(input: ClientCertificateInput, nowMs: number): FieldProblem[] {
  const { certificate, key } = input;
  for (const [field, text] of Object.entries({ certificate, key })) {
    if (text.length > clientCharactersMax) {
      return [tooLong(field, `has over ${clientCharactersMax} characters`)];
    }
  }
  const [own] = readCertificates(certificate) ?? [];
  const privateKey = readPrivateKey(key);
  const problems: FieldProblem[] = [];
  if (own === undefined) problems.push(invalid("certificate", "must be PEM certificates"));
  else if (own.validToDate.getTime() <= nowMs) problems.push(invalid("certificate", "has expired"));
  if (privateKey === undefined) problems.push(invalid("key", "must be an unencrypted private key in PEM"));
  else if (own !== undefined && !own.checkPrivateKey(privateKey))
    problems.push(invalid("key", "is not the certificate's"));
  return problems;
}

/** The end of each certificate's validity; none of text that is not PEM certificates. */
export function endsOfValidity(pem: string): readonly Date[] {
  return (readCertificates(pem) ?? []).map(({ validToDate }) => validToDate);
}

/** The earliest end of validity. Call it only without problems. */
export function validUntil(certificate: string): Date {
  return new X509Certificate(certificate).validToDate;
}

function readCertificates(pem: string): readonly X509Certificate[] | undefined {
  try {
    const texts = pem.match(certificateShape) ?? [];
    return texts.length === 0 ? undefined : texts.map((text) => new X509Certificate(text));
  } catch {
    return undefined;
  }
}

function readPrivateKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}
