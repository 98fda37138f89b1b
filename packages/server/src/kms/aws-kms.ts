import { createHmac, hash } from "node:crypto";
import {
  askForObject,
  askForText,
  type KeyService,
  KeyServiceError,
  readTokenOf,
  timeoutDefaultMs,
} from "./key-service.ts";

export interface AwsKmsOptions {
  /** Default: that of the region. */
  readonly url?: string | null;
  readonly region: string;
  /** Id, ARN, or alias/… of a symmetric key. */
  readonly key: string;
  readonly credentials: AwsCredentialSources;
  readonly timeoutMs?: number;
  /** For the key service. Where credentials come from is on this machine, and asked directly. */
  readonly fetch?: typeof fetch;
  readonly nowMs?: () => number;
}

/** In this order: the first that is given. Without any, the role of the EC2 instance. */
export interface AwsCredentialSources {
  readonly fixed?: AwsCredentials | undefined;
  /** The agent of EKS or ECS. */
  readonly containerUrl?: string | undefined;
  /** Its token, read again for each request. */
  readonly containerTokenFile?: string | undefined;
  /** Default: the instance metadata service. */
  readonly metadataUrl?: string;
}

const prefix = "aws:kms:";
const metadataDefault = "http://169.254.169.254";
const roles = "/latest/meta-data/iam/security-credentials/";
/** Ciphertexts are bound to it: another use of the same key opens none of ours. */
const encryptionContext = { purpose: "paybell master key" };

/** AWS Key Management Service: the key never leaves it. */
export class AwsKms implements KeyService {
  readonly #options: AwsKmsOptions;

  constructor(options: AwsKmsOptions) {
    this.#options = options;
  }

  async wrap(key: Buffer): Promise<string> {
    const { CiphertextBlob: wrapped } = await this.#ask("Encrypt", { Plaintext: key.toString("base64") });
    if (typeof wrapped !== "string")
      throw new KeyServiceError("The key service answered Encrypt without a ciphertext.");
    return `${prefix}${wrapped}`;
  }

  async unwrap(text: string): Promise<Buffer> {
    if (!text.startsWith(prefix)) throw new KeyServiceError("AWS KMS did not wrap this master key.");
    const { Plaintext: key } = await this.#ask("Decrypt", { CiphertextBlob: text.slice(prefix.length) });
    if (typeof key !== "string") throw new KeyServiceError("The key service answered Decrypt without a plaintext.");
    return Buffer.from(key, "base64");
  }

  async #ask(action: "Encrypt" | "Decrypt", content: object): Promise<Readonly<Record<string, unknown>>> {
    const { region, key, timeoutMs = timeoutDefaultMs, fetch: fetchBy = fetch, nowMs = Date.now } = this.#options;
    const url = new URL("/", this.#options.url ?? `https://kms.${region}.amazonaws.com`);
    const body = JSON.stringify({ KeyId: key, EncryptionContext: encryptionContext, ...content });
    const unsigned = { "content-type": "application/x-amz-json-1.1", "x-amz-target": `TrentService.${action}` };
    const request = { url, headers: unsigned, body, region, service: "kms", atMs: nowMs() };
    const headers = signedHeaders(request, await this.#credentials());
    return await askForObject({ url, action, headers, body, timeoutMs, fetch: fetchBy });
  }

  async #credentials(): Promise<AwsCredentials> {
    const { fixed, containerUrl, containerTokenFile, metadataUrl = metadataDefault } = this.#options.credentials;
    if (fixed !== undefined) return fixed;
    if (containerUrl !== undefined) {
      const token = containerTokenFile && (await readTokenOf(containerTokenFile));
      return await this.#temporary(containerUrl, token === undefined ? {} : { authorization: token });
    }
    const lifetime = { "x-aws-ec2-metadata-token-ttl-seconds": "60" };
    const session = await this.#local(`${metadataUrl}/latest/api/token`, lifetime, "PUT");
    const headers = { "x-aws-ec2-metadata-token": session };
    const [role = ""] = (await this.#local(`${metadataUrl}${roles}`, headers)).trim().split("\n");
    return await this.#temporary(`${metadataUrl}${roles}${encodeURIComponent(role)}`, headers);
  }

  async #temporary(url: string, headers: Readonly<Record<string, string>>): Promise<AwsCredentials> {
    const found = await askForObject({ ...this.#asked(url), headers, method: "GET" });
    const { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, Token: sessionToken } = found;
    if ([accessKeyId, secretAccessKey, sessionToken].every((one) => typeof one === "string")) {
      return { accessKeyId, secretAccessKey, sessionToken } as AwsCredentials;
    }
    throw new KeyServiceError(`${new URL(url).origin} has no credentials for this service.`);
  }

  #local(url: string, headers: Readonly<Record<string, string>>, method: "GET" | "PUT" = "GET"): Promise<string> {
    return askForText({ ...this.#asked(url), headers, method });
  }

  #asked(url: string) {
    const { timeoutMs = timeoutDefaultMs } = this.#options;
    return { url: new URL(url), action: "for credentials", timeoutMs, fetch };
  }
}

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Temporary ones have it. */
  readonly sessionToken?: string | undefined;
}

export interface AwsRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly region: string;
  readonly service: string;
  /** Milliseconds since 1970. */
  readonly atMs: number;
}

const algorithm = "AWS4-HMAC-SHA256";

/**
 * The headers of a POST to `/` without a query, with AWS's signature, version 4: a MAC over them and the body.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
export function signedHeaders(request: AwsRequest, credentials: AwsCredentials): Record<string, string> {
  const { url, headers, body, region, service, atMs } = request;
  const at = new Date(atMs).toISOString().replace(/[-:]|\.\d{3}/g, "");
  const scope = `${at.slice(0, 8)}/${region}/${service}/aws4_request`;
  const signed: Record<string, string> = {
    ...headers,
    host: url.host,
    "x-amz-date": at,
    ...(credentials.sessionToken !== undefined && { "x-amz-security-token": credentials.sessionToken }),
  };
  const names = Object.keys(signed).sort();
  const lines = names.map((name) => `${name}:${signed[name]?.trim()}\n`).join("");
  const canonical = ["POST", "/", "", lines, names.join(";"), hash("sha256", body)].join("\n");
  const text = [algorithm, at, scope, hash("sha256", canonical)].join("\n");
  const key = scope
    .split("/")
    .reduce<Buffer | string>((secret, part) => mac(secret, part), `AWS4${credentials.secretAccessKey}`);
  const { host: _, ...sent } = signed;
  return {
    ...sent,
    authorization:
      `${algorithm} Credential=${credentials.accessKeyId}/${scope}, ` +
      `SignedHeaders=${names.join(";")}, Signature=${mac(key, text).toString("hex")}`,
  };
}

function mac(key: Buffer | string, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
