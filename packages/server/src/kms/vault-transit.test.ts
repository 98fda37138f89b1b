import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { listening } from "../../../../test/support/temporary.ts";
import { readConfig } from "../config/config.ts";
import { newMasterKeyText, openMasterKey } from "../programs/master-key.ts";
import { KeyServiceError } from "./key-service.ts";
import { VaultTransit } from "./vault-transit.ts";

const token = "hvs.token-of-a-test";
const transitKey = randomBytes(32);
let folder: string;
let tokenFile: string;
let url: string;
let answerWith: ((response: ServerResponse) => void) | undefined;

/** Speaks Vault's transit API: encrypt and decrypt of one key, for one token. */
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    if (answerWith !== undefined) return answerWith(response);
    const reply = (status: number, body: object) => response.writeHead(status).end(JSON.stringify(body));
    if (request.headers["x-vault-token"] !== token) return reply(403, { errors: ["permission denied"] });
    const body = JSON.parse(Buffer.concat(chunks).toString()) as { plaintext?: string; ciphertext?: string };
    if (request.url === "/v1/transit/encrypt/paybell") {
      const iv = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", transitKey, iv);
      const text = Buffer.concat([cipher.update(Buffer.from(body.plaintext ?? "", "base64")), cipher.final()]);
      const sealed = Buffer.concat([iv, text, cipher.getAuthTag()]).toString("base64");
      return reply(200, { data: { ciphertext: `vault:v1:${sealed}`, key_version: 1 } });
    }
    if (request.url !== "/v1/transit/decrypt/paybell") return reply(404, { errors: [] });
    const sealed = Buffer.from((body.ciphertext ?? "").replace("vault:v1:", ""), "base64");
    const decipher = createDecipheriv("aes-256-gcm", transitKey, sealed.subarray(0, 12));
    decipher.setAuthTag(sealed.subarray(-16));
    try {
      const plain = Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]);
      return reply(200, { data: { plaintext: plain.toString("base64") } });
    } catch {
      return reply(400, { errors: ["cipher: message authentication failed"] });
    }
  });
});

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "paybell-kms-"));
  tokenFile = join(folder, "token");
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(async () => {
  answerWith = undefined;
  await writeFile(tokenFile, `${token}\n`);
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true });
});

/** Another server, which would take the token and what is sent with it. */
async function leadElsewhere(): Promise<void> {
  const elsewhere = createServer((_, response) => response.end('{"data":{"plaintext":"AAAA"}}'));
  const location = `http://127.0.0.1:${await listening(elsewhere)}/`;
  answers((response) => response.writeHead(307, { location }).end());
}

/** Its last byte never comes: only a bound on what is read ends it before the time-out. */
function endless(): void {
  answers((response) => response.writeHead(200).write(`"${" ".repeat(70_000)}`));
}

const answers = (how: (response: ServerResponse) => void) => {
  answerWith = how;
};
const vault = (timeoutMs = 60_000) => new VaultTransit({ url, mount: "transit", key: "paybell", tokenFile, timeoutMs });
const settings = () => ({ PAYBELL_KMS: "vault", PAYBELL_KMS_URL: url, PAYBELL_KMS_TOKEN_FILE: tokenFile });

test("a key is unwrapped by the key service that wrapped it, and by no other", async () => {
  const key = randomBytes(32);
  const wrapped = await vault().wrap(key);
  expect(wrapped).toMatch(/^vault:v1:/);
  expect(Buffer.from(wrapped.slice(9), "base64").includes(key)).toBe(false);
  expect(await vault().unwrap(wrapped)).toEqual(key);
});

test("a service takes a wrapped master key, alone or beside others", async () => {
  const wrapped = await newMasterKeyText(readConfig(settings()));
  const other = randomBytes(32).toString("base64");
  const env = { ...settings(), PAYBELL_MASTER_KEY: wrapped, PAYBELL_MASTER_KEY_OTHERS: other };
  const masterKey = await openMasterKey(readConfig(env));
  const swapped = { ...env, PAYBELL_MASTER_KEY: other, PAYBELL_MASTER_KEY_OTHERS: wrapped };
  const sealed = masterKey.sealNamed(Buffer.from("a secret"), "x");
  expect((await openMasterKey(readConfig(swapped))).openNamed(sealed, "x").toString()).toBe("a secret");
});

test.each([
  ["refuses the token", () => writeFile(tokenFile, "hvs.another"), /status 403/],
  ["has no such token", () => rm(tokenFile), /token for the key service cannot be read/],
  [
    "quotes what it was sent",
    () => answers((r) => r.writeHead(400).end(JSON.stringify({ errors: [token] }))),
    /status 400/,
  ],
  ["quotes it outside of JSON", () => answers((response) => response.end(token)), /not JSON/],
  ["answers something else", () => answers((response) => response.end("<html>")), /not JSON/],
  ["answers nothing of use", () => answers((response) => response.end("{}")), /without a plaintext/],
  ["answers without an end", endless, /over 64 KiB/],
  ["leads elsewhere", leadElsewhere, /could not be asked/],
  ["never answers", () => answers(() => undefined), /could not be asked/, 500],
])("one that %s ends the start, with no secret in its words", async (_, prepare, words, timeoutMs?) => {
  const wrapped = await vault().wrap(randomBytes(32));
  await prepare();
  const failure: Error = (await vault(timeoutMs)
    .unwrap(wrapped)
    .catch((error: Error) => error)) as Error;
  expect(failure).toBeInstanceOf(KeyServiceError);
  expect(failure.message).toMatch(words);
  for (const secret of [token, wrapped]) expect(failure.message).not.toContain(secret);
});

test("an unwrapped key has 32 bytes, or the start ends", async () => {
  const wrapped = await vault().wrap(randomBytes(16));
  const config = readConfig({ ...settings(), PAYBELL_MASTER_KEY: wrapped });
  await expect(openMasterKey(config)).rejects.toThrow("32 bytes");
});

test("settings that contradict each other are named", () => {
  const wrapped = "vault:v1:AAAA";
  const problems = (env: NodeJS.ProcessEnv) => {
    try {
      readConfig(env);
      return "";
    } catch (error) {
      return String(error);
    }
  };
  expect(problems({ PAYBELL_MASTER_KEY: wrapped })).toContain("PAYBELL_KMS is required");
  expect(problems({ PAYBELL_KMS: "vault" })).toMatch(
    /PAYBELL_KMS_URL is required.*PAYBELL_KMS_TOKEN_FILE is required/s,
  );
  expect(problems({ ...settings(), PAYBELL_KMS_URL: "http://vault.internal:8200" })).toContain("must begin with https");
  expect(problems(settings())).toBe("");
});
