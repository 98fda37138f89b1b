import { createHash } from "node:crypto";
import { createSecureContext, getCACertificates, type SecureContext, type TLSSocket } from "node:tls";
import type { ClientCertificate } from "../../partners/partner.ts";

/** The ciphers of TLS 1.3, and those of 1.2 with forward secrecy and an AEAD: no CBC, no SHA-1. */
const aeadCiphers = [
  ...["TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"],
  ...["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-GCM-SHA256"],
  ...["ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-RSA-AES128-GCM-SHA256"],
].join(":");
const signatures = [
  ...["ecdsa_secp256r1_sha256", "ecdsa_secp384r1_sha384", "ecdsa_secp521r1_sha512", "ed25519", "ed448"],
  ...["rsa_pss_rsae_sha256", "rsa_pss_rsae_sha384", "rsa_pss_rsae_sha512"],
  ...["rsa_pss_pss_sha256", "rsa_pss_pss_sha384", "rsa_pss_pss_sha512"],
  ...["rsa_pkcs1_sha256", "rsa_pkcs1_sha384", "rsa_pkcs1_sha512"],
].join(":");

export interface Trust {
  /** PEM certificates that are trusted in addition to the well-known CAs. */
  readonly extraCas?: readonly string[] | undefined;
  /** PEM: only these CAs are trusted. */
  readonly onlyCa?: string | null;
  /** Presented to a server that requests a certificate. */
  readonly client?: ClientCertificate | undefined;
}

/** The TLS context of every outgoing connection. */
export function callingContext({ extraCas, onlyCa = null, client }: Trust = {}): SecureContext {
  const beside = extraCas === undefined ? undefined : [...getCACertificates("default"), ...extraCas];
  const ca = onlyCa ?? beside;
  return createSecureContext({
    minVersion: "TLSv1.2",
    ciphers: aeadCiphers,
    sigalgs: signatures,
    ...(ca !== undefined && { ca }),
    ...(client && { cert: client.certificate, key: client.key.export({ type: "pkcs8", format: "pem" }) }),
  });
}

/**
 * The pin of the server's public key: `sha256/` and the base64 of its SPKI's SHA-256. Undefined without a certificate.
 */
export function publicKeyPin(socket: TLSSocket): string | undefined {
  const spki = socket.getPeerX509Certificate()?.publicKey.export({ type: "spki", format: "der" });
  return spki && `sha256/${createHash("sha256").update(spki).digest("base64")}`;
}
