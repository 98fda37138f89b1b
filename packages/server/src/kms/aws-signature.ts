import { createHmac, hash } from "node:crypto";

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
