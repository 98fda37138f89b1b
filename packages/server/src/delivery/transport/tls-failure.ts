import { codeOf, describe } from "./failure.ts";

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
