import { createPrivateKey, randomBytes, X509Certificate } from "node:crypto";
import { chmod, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { type Clock, systemClock } from "../clock.ts";
import type { PartnerId } from "../ids.ts";
import { MasterKey } from "../partners/master-key.ts";
import { writePrivately } from "../programs/process.ts";

const credentials = z.object({
  baseUrl: z.string(),
  operatorToken: z.string(),
  partnerId: z.string().transform((id) => id as PartnerId),
  apiKey: z.string(),
  /** Base64 of 32 bytes. */
  encryptionKey: z.string(),
  /** Base64 of 32 bytes. */
  signingKey: z.string(),
  webhookSecret: z.string(),
  receiverUrl: z.string(),
});

/** The credentials of the sandbox, in sandbox.json, mode 0600. */
export type SandboxCredentials = Readonly<z.infer<typeof credentials>>;

export function credentialsPath(home: string): string {
  return join(home, "sandbox.json");
}

/** The credentials of the last start; undefined if there was none or the file is damaged: then new ones are created. */
export async function readCredentials(home: string): Promise<SandboxCredentials | undefined> {
  try {
    return credentials.parse(JSON.parse(await readFile(credentialsPath(home), "utf8")));
  } catch {
    return undefined;
  }
}

export async function writeCredentials(home: string, kept: SandboxCredentials): Promise<void> {
  await writePrivately(credentialsPath(home), `${JSON.stringify(kept, null, 2)}\n`);
}

/** The sandbox's own master key: created at its first start, stored beside its database. */
export async function sandboxMasterKey(home: string): Promise<MasterKey> {
  const path = join(home, "master.key");
  try {
    return MasterKey.parse((await readFile(path, "utf8")).trim());
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const text = randomBytes(32).toString("base64");
  await writePrivately(path, `${text}\n`);
  return MasterKey.parse(text);
}

/** A TLS certificate for this machine's loopback names, in PEM. */
export interface LoopbackCertificate {
  readonly key: string;
  readonly cert: string;
  /** The certificate that a client must trust to accept `cert`: the certificate itself, which cannot issue others. */
  readonly ca: string;
}

const dayMs = 86_400_000;
const validDays = 365;
/** A sandbox may run for weeks: a certificate that would end sooner is replaced at startup. */
const renewBeforeDays = 30;
const fileName = "receiver.pem";

/**
 * The certificate of the sandbox partner's receiver, for localhost, 127.0.0.1 and ::1: created at the first start,
 * stored in `home` as receiver.pem (key and certificate, mode 0600), replaced when it is about to expire or cannot be
 * read. About 40 ms when new, 1 ms when stored.
 */
export async function loopbackCertificate(home: string, clock: Clock = systemClock): Promise<LoopbackCertificate> {
  const path = join(home, fileName);
  const kept = await readKept(path, clock.nowMs());
  if (kept !== undefined) return kept;
  const made = await make(clock.nowMs());
  await writePrivately(path, made.key + made.cert);
  return made;
}

async function readKept(path: string, nowMs: number): Promise<LoopbackCertificate | undefined> {
  try {
    const pem = await readFile(path, "utf8");
    const [key] = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\n/.exec(pem) ?? [];
    const [cert] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/.exec(pem) ?? [];
    if (key === undefined || cert === undefined) return undefined;
    const x509 = new X509Certificate(cert);
    if (!x509.checkPrivateKey(createPrivateKey(key))) return undefined;
    const isValidYet = x509.validFromDate.getTime() <= nowMs;
    const isValidStill = x509.validToDate.getTime() - nowMs > renewBeforeDays * dayMs;
    if (!isValidYet || !isValidStill) return undefined;
    await chmod(path, 0o600);
    return { key, cert, ca: cert };
  } catch {
    // Missing, unreadable or not a certificate: it is replaced, and if that fails too, its error says why.
    return undefined;
  }
}

async function make(nowMs: number): Promise<LoopbackCertificate> {
  // 210 modules, which `paybell serve` never needs.
  const { generate } = await import("selfsigned");
  const { private: key, cert } = await generate([{ name: "commonName", value: "Paybell sandbox receiver" }], {
    keyType: "ec",
    curve: "P-256",
    algorithm: "sha256",
    // An hour earlier, for clients whose clock is slow.
    notBeforeDate: new Date(nowMs - 3_600_000),
    notAfterDate: new Date(nowMs + validDays * dayMs),
    extensions: [
      // Not a CA: a client that trusts it trusts only this machine's loopback names.
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      {
        name: "subjectAltName",
        altNames: [
          { type: 2, value: "localhost" },
          { type: 7, ip: "127.0.0.1" },
          { type: 7, ip: "::1" },
        ],
      },
    ],
  });
  return { key: endLine(key), cert: endLine(cert), ca: endLine(cert) };
}

function endLine(pem: string): string {
  return `${pem.replaceAll("\r\n", "\n").trimEnd()}\n`;
}
