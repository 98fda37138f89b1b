import { randomBytes } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { PartnerId } from "../ids.ts";
import { MasterKey } from "../partners/master-key.ts";
import { writePrivately } from "../programs/process.ts";

/** The credentials of the sandbox, in sandbox.json, mode 0600. */
export interface SandboxCredentials {
  readonly baseUrl: string;
  readonly operatorToken: string;
  readonly partnerId: PartnerId;
  readonly apiKey: string;
  /** Base64 of 32 bytes. */
  readonly encryptionKey: string;
  /** Base64 of 32 bytes. */
  readonly signingKey: string;
  readonly webhookSecret: string;
  readonly receiverUrl: string;
}

const credentialNames = [
  "baseUrl",
  "operatorToken",
  "partnerId",
  "apiKey",
  "encryptionKey",
  "signingKey",
  "webhookSecret",
  "receiverUrl",
] as const satisfies readonly (keyof SandboxCredentials)[];

export function credentialsPath(home: string): string {
  return join(home, "sandbox.json");
}

/** The credentials of the last start; undefined if there was none or the file is damaged: then new ones are created. */
export async function readCredentials(home: string): Promise<SandboxCredentials | undefined> {
  try {
    const read: unknown = JSON.parse(await readFile(credentialsPath(home), "utf8"));
    const whole = credentialNames.every((name) => typeof (read as Record<string, unknown>)[name] === "string");
    return whole ? (read as SandboxCredentials) : undefined;
  } catch {
    return undefined;
  }
}

export async function writeCredentials(home: string, credentials: SandboxCredentials): Promise<void> {
  await writePrivately(credentialsPath(home), `${JSON.stringify(credentials, null, 2)}\n`);
}

export function newOperatorToken(): string {
  return randomBytes(32).toString("base64url");
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
  await mkdir(home, { recursive: true, mode: 0o700 });
  await writePrivately(path, `${text}\n`);
  return MasterKey.parse(text);
}
