import { errors } from "undici";
import { firstFailure } from "../../errors.ts";
import type { FailureReason } from "../delivery.ts";

/** Why a POST got no response: a stable reason, and a description for the operator. */
export class TransportFailure extends Error {
  override readonly name = "TransportFailure";
  readonly reason: FailureReason;

  constructor(reason: FailureReason, detail: string) {
    super(detail);
    this.reason = reason;
  }
}

interface CodedError {
  readonly code?: unknown;
  readonly message: string;
}

/** The code and message of an error, truncated: a TLS error can quote a whole certificate. */
export function describe(error: unknown): string {
  const { code, message }: CodedError = firstFailure(error);
  const cut = message.length > 300 ? `${message.slice(0, 300)}…` : message;
  return typeof code === "string" && !cut.includes(code) ? `${cut} (${code})` : cut;
}

export function codeOf(error: unknown): string {
  const { code }: CodedError = firstFailure(error);
  return typeof code === "string" ? code : "";
}

const resetCodes = new Set(["ECONNRESET", "EPIPE", "ECONNABORTED", "UND_ERR_SOCKET"]);

/** The connection was closed during the request. If it was used before, the partner may just have closed it as idle. */
export function isReset(error: unknown): boolean {
  return resetCodes.has(codeOf(error)) && !isBadAnswer(error);
}

/** undici's code for an invalid response, such as 101 to a POST. */
function isBadAnswer(error: unknown): boolean {
  return error instanceof Error && /^bad (response|upgrade)$/.test(error.message);
}

/** The client library asserts the range of a status: 099 fails there, with its message. */
const impossibleStatus = "ERR_ASSERTION";

const notHttp = [errors.HTTPParserError, errors.HeadersOverflowError, errors.ResponseContentLengthMismatchError];

/** The failure of an attempt by an error after the connection was established. */
export function exchangeFailure(error: unknown): TransportFailure {
  if (error instanceof TransportFailure) return error;
  if (isReset(error)) {
    return new TransportFailure("reset", `The connection ended before the answer was complete: ${describe(error)}.`);
  }
  if (isBadAnswer(error) || notHttp.some((kind) => error instanceof kind)) {
    return new TransportFailure("bad_response", `The answer is not HTTP/1.1: ${describe(error)}.`);
  }
  if (codeOf(error) === impossibleStatus) {
    return new TransportFailure("bad_response", "The answer is not HTTP/1.1: its status is below 100.");
  }
  if (codeOf(error).startsWith("ERR_SSL")) {
    return new TransportFailure("tls", `The TLS connection broke (${codeOf(error)}).`);
  }
  return new TransportFailure("internal", describe(error));
}

/** The beginning of the sentence for a port that accepts TCP alone. */
export const noTls = "The port does not speak TLS";

/** By Node's codes: its own messages quote OpenSSL's source lines, or advise the operator of Node. */
const words: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "The certificate, or one of its chain, has expired",
  CERT_NOT_YET_VALID: "The certificate is not valid yet",
  CERT_REVOKED: "The certificate was revoked",
  CERT_UNTRUSTED: "The certificate's authority is not trusted",
  DEPTH_ZERO_SELF_SIGNED_CERT: "The certificate is self-signed, and not trusted",
  SELF_SIGNED_CERT_IN_CHAIN: "The certificate's authority is not trusted",
  UNABLE_TO_GET_ISSUER_CERT: "The certificate's issuer is not known: an intermediate certificate is missing",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    "The certificate's issuer is not known: an intermediate certificate is missing, or its authority is not trusted",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    "The certificate's issuer is not known: an intermediate certificate is missing, or its authority is not trusted",
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
  ERR_SSL_HTTP_REQUEST: noTls,
  ERR_SSL_UNSUPPORTED_PROTOCOL: "The server offers no TLS 1.2 or 1.3",
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: "The server offers no TLS 1.2 or 1.3",
  ERR_SSL_TLS_ALERT_PROTOCOL_VERSION: "The server offers no TLS 1.2 or 1.3",
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: "The server offers no AEAD cipher suite",
  ERR_SSL_SSL_TLS_ALERT_HANDSHAKE_FAILURE: "The server offers no AEAD cipher suite",
};

/** Why a TLS connection failed: a sentence, with the code to search for. */
export function tlsDetail(error: unknown, hostname: string): string {
  const code = codeOf(error) === "EPROTO" ? codeInWords(error) : codeOf(error);
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") return `The certificate is not for ${hostname} (${code}).`;
  const known = words[code];
  if (known !== undefined) return `${known} (${code}).`;
  if (code.startsWith("ERR_SSL_") || code === "EPROTO") return `The TLS handshake failed (${code}).`;
  return `${describe(error)}.`;
}

/** If a handshake fails while it is written to, Node reports OpenSSL's line: `…:SSL routines:<where>:<reason>:…` */
function codeInWords(error: unknown): string {
  const [, reason] = /SSL routines:[^:]*:([^:]+):/.exec(describe(error)) ?? [];
  return reason === undefined ? "EPROTO" : `ERR_SSL_${reason.toUpperCase().replaceAll(/[ /]/g, "_")}`;
}
