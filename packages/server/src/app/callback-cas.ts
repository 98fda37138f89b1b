import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type Config, ConfigError } from "../config.ts";

const pemCertificates = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * The PEM certificates of PAYBELL_CALLBACK_CA_FILE; none without it.
 *
 * @throws ConfigError if the file cannot be read, or contains no certificate: otherwise every callback to a private CA
 * would fail later
 */
export async function readCallbackCas({ callbackCaFile }: Pick<Config, "callbackCaFile">): Promise<readonly string[]> {
  if (callbackCaFile === null) return [];
  const problem = (detail: string) => new ConfigError([`PAYBELL_CALLBACK_CA_FILE (${callbackCaFile}) ${detail}`]);
  const pem = await readFile(callbackCaFile, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw problem(error.code === "ENOENT" ? "does not exist" : `cannot be read: ${error.code ?? error.message}`);
  });
  const certificates = pem.match(pemCertificates) ?? [];
  if (certificates.length === 0) throw problem("holds no PEM certificate");
  for (const [index, certificate] of certificates.entries()) {
    try {
      new X509Certificate(certificate);
    } catch {
      throw problem(`holds a certificate that cannot be read: number ${index + 1}`);
    }
  }
  return certificates;
}
