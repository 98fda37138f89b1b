import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { type FieldProblem, invalid, tooLong } from "../../errors.ts";
import { AddressBlocks } from "./address-blocks.ts";

const charactersMax = 2_048;

export interface CallbackUrlRules {
  /** Only the sandbox allows http:// and loopback callbacks. */
  readonly sandbox: boolean;
}

/** The partner's agreed addresses and ports; missing ones are not checked. */
export interface AgreedCallbacks {
  readonly callbackAddresses?: readonly string[];
  readonly callbackPorts?: readonly number[] | null;
}

/**
 * Returns the problem of a callback URL (section 4.1); undefined if it can be called. With `callbackAddresses`, a URL
 * whose host is a literal address is checked at once; names are checked when they are looked up.
 */
export function callbackUrlProblem(
  field: string,
  url: string,
  rules: CallbackUrlRules,
  { callbackAddresses: addresses, callbackPorts: ports = null }: AgreedCallbacks = {},
): FieldProblem | undefined {
  const invalid = (why: string): FieldProblem => ({ field, code: "invalid_callback_url", message: `${field} ${why}.` });
  if (url.length > charactersMax)
    return { field, code: "too_long", message: `${field} has over ${charactersMax} characters.` };
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:\/\//i.test(url)) return invalid("is not an absolute https:// URL");
  if (parsed.username !== "" || parsed.password !== "") return invalid("must not hold a user name or password");
  // Not parsed.hash: it is empty for a bare # as well.
  if (url.includes("#")) return invalid("must not hold a fragment");
  if (/[\s\p{Cc}\\]/u.test(url)) return invalid("holds white space, a control character or a backslash");
  if (!url.isWellFormed()) return invalid("holds half of a surrogate pair");
  if (parsed.protocol === "http:" && !rules.sandbox) {
    return { field, code: "insecure_callback_url", message: `${field} must begin with https://.` };
  }
  const port = parsed.port === "" ? (parsed.protocol === "https:" ? 443 : 80) : Number(parsed.port);
  if (ports !== null && !ports.includes(port))
    return invalid(`has a port that is not among callbackPorts (${ports.join(", ")})`);
  const literal = literalAddress(parsed.hostname);
  const refusal = literal && addresses && new AddressBlocks(addresses).refusal(literal, rules.sandbox);
  return refusal ? { field, code: "address_not_whitelisted", message: `${field}: ${refusal}.` } : undefined;
}

/**
 * The literal address of a URL's host, or undefined for a name. URL has normalised every spelling of an IPv4 address:
 * 2130706433, 0x7f.1 and 0177.1 are all 127.0.0.1.
 */
export function literalAddress(hostname: string): string | undefined {
  if (hostname.startsWith("[")) return hostname.slice(1, -1);
  return /^[0-9]+(\.[0-9]+){3}$/.test(hostname) ? hostname : undefined;
}

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

/** The end of validity of the first one, our own. Call it only without problems. */
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
