import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { listening, temporaryFolder } from "../../../../test/support/temporary.ts";
import { readConfig } from "../config/config.ts";
import { newMasterKeyText, openMasterKey } from "../programs/master-key.ts";
import { AwsKms, type AwsKmsOptions, signedHeaders } from "./aws-kms.ts";
import { KeyServiceError } from "./key-service.ts";

const fixed = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const temporary = { ...fixed, accessKeyId: "ASIAEXAMPLE", sessionToken: "a-session-token" };
const keys = new Map([["alias/paybell", randomBytes(32)]]);

async function serve(listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listening(createServer(listener))}`;
}

class Refused extends Error {}

/** AWS's rules, written down a second time: an answer only to a request whose signature is right, and is new. */
function requireSignature({ headers, method, url = "" }: IncomingMessage, body: string): void {
  const scope = "Credential=([^/]+)/(\\d{8})/([^/]+)/kms/aws4_request";
  const found = new RegExp(`^AWS4-HMAC-SHA256 ${scope}, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$`);
  const [, id, day = "", region, signed = "", signature] = found.exec(headers.authorization ?? "") ?? [];
  const who = [fixed, temporary].find(({ accessKeyId }) => accessKeyId === id);
  if (who === undefined) throw new Refused("UnrecognizedClientException");
  const session = "sessionToken" in who ? who.sessionToken : undefined;
  if (headers["x-amz-security-token"] !== session) throw new Refused("InvalidClientTokenIdException");
  const required = [
    "content-type",
    "host",
    "x-amz-date",
    ...(session === undefined ? [] : ["x-amz-security-token"]),
    "x-amz-target",
  ];
  if (signed !== required.join(";")) throw new Refused("IncompleteSignatureException");
  const at = String(headers["x-amz-date"]);
  const atMs = Date.parse(at.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  if (!(Math.abs(atMs - Date.now()) < 300_000) || !at.startsWith(day))
    throw new Refused("SignatureDoesNotMatchException");
  const digest = (text: string) => createHash("sha256").update(text).digest("hex");
  const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
  const lines = signed.split(";").map((name) => `${name}:${String(headers[name])}\n`);
  const canonical = `${method}\n${url}\n\n${lines.join("")}\n${signed}\n${digest(body)}`;
  const text = `AWS4-HMAC-SHA256\n${at}\n${day}/${region}/kms/aws4_request\n${digest(canonical)}`;
  const key = hmac(hmac(hmac(hmac(`AWS4${who.secretAccessKey}`, day), region ?? ""), "kms"), "aws4_request");
  if (region !== "eu-west-1" || hmac(key, text).toString("hex") !== signature) {
    throw new Refused("SignatureDoesNotMatchException");
  }
}

interface KmsBody {
  readonly KeyId: string;
  readonly EncryptionContext: Readonly<Record<string, string>>;
  readonly Plaintext?: string;
  readonly CiphertextBlob?: string;
}

/** A strict fake of AWS KMS. */
const kms: RequestListener = (request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks).toString();
    try {
      requireSignature(request, body);
      if (request.headers["content-type"] !== "application/x-amz-json-1.1") throw new Refused("SerializationException");
      response.end(JSON.stringify(answerTo(String(request.headers["x-amz-target"]), JSON.parse(body) as KmsBody)));
    } catch (error) {
      const type = error instanceof Refused ? error.message : "KMSInternalException";
      response.writeHead(400).end(JSON.stringify({ __type: type, message: `about ${body}` }));
    }
  });
};

function answerTo(target: string, { KeyId, EncryptionContext, Plaintext = "", CiphertextBlob = "" }: KmsBody) {
  const key = keys.get(KeyId);
  if (key === undefined) throw new Refused("NotFoundException");
  const context = Buffer.from(JSON.stringify(EncryptionContext));
  if (target === "TrentService.Encrypt") {
    const iv = randomBytes(12);
    const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(context);
    const text = Buffer.concat([cipher.update(Buffer.from(Plaintext, "base64")), cipher.final()]);
    return { KeyId, CiphertextBlob: Buffer.concat([iv, cipher.getAuthTag(), text]).toString("base64") };
  }
  if (target !== "TrentService.Decrypt") throw new Refused("UnknownOperationException");
  const sealed = Buffer.from(CiphertextBlob, "base64");
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, 12)).setAAD(context);
  decipher.setAuthTag(sealed.subarray(12, 28));
  try {
    return {
      KeyId,
      Plaintext: Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()]).toString("base64"),
    };
  } catch {
    throw new Refused("InvalidCiphertextException");
  }
}

async function service(change: Partial<AwsKmsOptions> = {}): Promise<AwsKms> {
  return new AwsKms({
    url: await serve(kms),
    region: "eu-west-1",
    key: "alias/paybell",
    credentials: { fixed },
    ...change,
  });
}

test("a request is signed as in AWS's test suite", () => {
  const url = new URL("https://example.amazonaws.com/");
  const atMs = Date.parse("2015-08-30T12:36:00Z");
  const request = { url, headers: {}, body: "", region: "us-east-1", service: "service", atMs };
  expect(signedHeaders(request, fixed)["authorization"]).toBe(
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, " +
      "SignedHeaders=host;x-amz-date, " +
      "Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
  );
});

test("a key is unwrapped by AWS KMS, and the text does not have it", async () => {
  const key = randomBytes(32);
  const wrapped = await (await service()).wrap(key);
  expect(wrapped).toMatch(/^aws:kms:[A-Za-z0-9+/=]+$/);
  expect(Buffer.from(wrapped.slice(8), "base64").includes(key)).toBe(false);
  expect(await (await service()).unwrap(wrapped)).toEqual(key);
});

test("a service starts with a master key that AWS KMS wrapped", async () => {
  const env = {
    PAYBELL_KMS: "aws",
    PAYBELL_KMS_URL: await serve(kms),
    PAYBELL_KMS_KEY: "alias/paybell",
    AWS_REGION: "eu-west-1",
    AWS_ACCESS_KEY_ID: temporary.accessKeyId,
    AWS_SECRET_ACCESS_KEY: temporary.secretAccessKey,
    AWS_SESSION_TOKEN: temporary.sessionToken,
  };
  const wrapped = await newMasterKeyText(readConfig(env));
  const open = () => openMasterKey(readConfig({ ...env, PAYBELL_MASTER_KEY: wrapped }));
  const sealed = (await open()).sealNamed(Buffer.from("a secret"), "x");
  expect((await open()).openNamed(sealed, "x").toString()).toBe("a secret");
});

const role = {
  AccessKeyId: temporary.accessKeyId,
  SecretAccessKey: temporary.secretAccessKey,
  Token: temporary.sessionToken,
};

test("credentials come from the agent of a container, by its token", async () => {
  const folder = temporaryFolder();
  const containerTokenFile = join(folder, "token");
  await writeFile(containerTokenFile, "of the pod\n");
  const containerUrl = await serve(({ headers, url }, response) => {
    const isRight = url === "/v1/credentials" && headers.authorization === "of the pod";
    response.writeHead(isRight ? 200 : 403).end(JSON.stringify(role));
  });
  const credentials = { containerUrl: `${containerUrl}/v1/credentials`, containerTokenFile };
  const key = randomBytes(32);
  const kept = await service({ credentials });
  expect(await kept.unwrap(await kept.wrap(key))).toEqual(key);
  await writeFile(containerTokenFile, "of another");
  await expect(kept.wrap(key)).rejects.toThrow("status 403");
});

test("credentials come from the instance's role, by a session", async () => {
  const path = "/latest/meta-data/iam/security-credentials/";
  const metadataUrl = await serve(({ headers, method, url }, response) => {
    if (method === "PUT" && url === "/latest/api/token") {
      return void response.writeHead(headers["x-aws-ec2-metadata-token-ttl-seconds"] ? 200 : 400).end("a session");
    }
    if (headers["x-aws-ec2-metadata-token"] !== "a session") return void response.writeHead(401).end();
    if (url === path) response.end("paybell-role\n");
    else response.writeHead(url === `${path}paybell-role` ? 200 : 404).end(JSON.stringify(role));
  });
  const key = randomBytes(32);
  const kept = await service({ credentials: { metadataUrl } });
  expect(await kept.unwrap(await kept.wrap(key))).toEqual(key);
});

const wrong = { ...fixed, secretAccessKey: "not-the-right-one" };

test.each<[string, Partial<AwsKmsOptions>, RegExp]>([
  ["a wrong secret", { credentials: { fixed: wrong } }, /status 400 \(SignatureDoesNotMatchException\)/],
  ["a clock that is off", { nowMs: () => Date.now() - 600_000 }, /SignatureDoesNotMatchException/],
  ["another region", { region: "us-east-1" }, /SignatureDoesNotMatchException/],
  ["a key that does not exist", { key: "alias/none" }, /NotFoundException/],
  ["a token that no header may have", { credentials: { fixed: { ...temporary, sessionToken: "a\nb" } } }, /no header/],
  ["no credentials", { credentials: { metadataUrl: "http://127.0.0.1:1" } }, /could not be asked/],
])("%s ends the start, with no secret in its words", async (_, change, words) => {
  const key = randomBytes(32);
  const wrapped = await (await service()).wrap(key);
  const failure: Error = (await (await service(change)).unwrap(wrapped).catch((error: Error) => error)) as Error;
  expect(failure).toBeInstanceOf(KeyServiceError);
  expect(failure.message).toMatch(words);
  const secrets = [fixed.secretAccessKey, wrong.secretAccessKey, temporary.sessionToken, "a\nb", wrapped.slice(8)];
  for (const secret of secrets) expect(failure.message).not.toContain(secret);
});

test("a text of another key service, or one that was tampered with, is not unwrapped", async () => {
  const kept = await service();
  await expect(kept.unwrap("vault:v1:AAAA")).rejects.toThrow("did not wrap");
  await expect(kept.unwrap(`aws:kms:${randomBytes(60).toString("base64")}`)).rejects.toThrow("InvalidCiphertext");
});

test("settings that AWS KMS needs are named", () => {
  const problems = (env: NodeJS.ProcessEnv) => {
    try {
      readConfig({ PAYBELL_KMS: "aws", ...env });
      return "";
    } catch (error) {
      return String(error);
    }
  };
  const right = { PAYBELL_KMS_KEY: "alias/paybell", AWS_REGION: "eu-west-1" };
  expect(problems({})).toMatch(/PAYBELL_KMS_KEY is required.*AWS_REGION is required/s);
  expect(problems({ ...right, AWS_ACCESS_KEY_ID: "AKID" })).toContain("AWS_SECRET_ACCESS_KEY are required together");
  expect(problems({ ...right, PAYBELL_KMS_URL: "http://kms.internal" })).toContain("must begin with https://");
  expect(problems(right)).toBe("");
});
