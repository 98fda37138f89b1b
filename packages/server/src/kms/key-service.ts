import { readFile } from "node:fs/promises";
import { messageOf } from "../errors.ts";

/**
 * A service that encrypts master keys at rest. It is called once, at startup: later, data is sealed under the master
 * key in memory, so no command and no delivery waits for it.
 */
export interface KeyService {
  /** @returns the text to store, such as `vault:v1:…` or `aws:kms:…` */
  wrap(key: Buffer): Promise<string>;
  /** @throws KeyServiceError */
  unwrap(wrapped: string): Promise<Buffer>;
}

/** The key service did not answer as expected. The message names its URL and the request, never a key or a token. */
export class KeyServiceError extends Error {
  override readonly name = "KeyServiceError";
  readonly code = "key_service";
  readonly remedy = "Check the settings of PAYBELL_KMS, the rights of this service there, and the key's name.";
}

export interface KeyServiceRequest {
  readonly url: URL;
  /** In words, for errors. */
  readonly action: string;
  readonly method?: "GET" | "POST" | "PUT";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly timeoutMs: number;
  readonly fetch: typeof fetch;
}

export const timeoutDefaultMs = 10_000;
const answerBytesMax = 65_536;

/** Asks a key service, and reads its answer as text. @throws KeyServiceError, which quotes nothing of either */
export async function askForText(request: KeyServiceRequest): Promise<string> {
  const { url, action, method = "POST", headers, body, timeoutMs, fetch: fetchBy } = request;
  // An error about a header quotes it.
  if (Object.values(headers).some((value) => /[^\x20-\x7e]/.test(value))) {
    throw new KeyServiceError("The token for the key service holds a character that no header may have.");
  }
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const answer = await fetchBy(url, {
      method,
      headers,
      ...(body !== undefined && { body }),
      redirect: "error",
      signal,
    });
    const text = await readBounded(answer);
    // Its error message may quote what was sent.
    if (!answer.ok) {
      const type = typeOf(text);
      throw new KeyServiceError(`The key service answered ${action} with status ${answer.status}${type}.`);
    }
    if (text === undefined) {
      const remedy = "does PAYBELL_KMS_URL lead to it?";
      throw new KeyServiceError(`The key service answered ${action} with over 64 KiB: ${remedy}`);
    }
    return text;
  } catch (error) {
    if (error instanceof KeyServiceError) throw error;
    throw new KeyServiceError(`The key service at ${url.origin} could not be asked: ${reasonOf(error)}.`);
  }
}

export async function askForObject(request: KeyServiceRequest): Promise<Readonly<Record<string, unknown>>> {
  const text = await askForText(request);
  try {
    return Object(JSON.parse(text)) as Readonly<Record<string, unknown>>;
  } catch {
    const origin = request.url.origin;
    throw new KeyServiceError(`The key service at ${origin} could not be asked: its answer is not JSON.`);
  }
}

/** Reads a token; an agent renews it. */
export async function readTokenOf(path: string): Promise<string> {
  try {
    return (await readFile(path, "utf8")).trim();
  } catch (error) {
    const message = `The token for the key service cannot be read: ${messageOf(error)}.`;
    throw new KeyServiceError(message);
  }
}

/** Undefined if it is longer than any answer of a key service. The rest is not read. */
async function readBounded({ body }: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > answerBytesMax) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The kind of an error of AWS, such as AccessDeniedException: a word, and nothing that was sent. */
function typeOf(text = ""): string {
  const [, type] = /"__type"\s*:\s*"(?:[\w.]+#)?([A-Z][A-Za-z]{2,60}Exception)"/.exec(text) ?? [];
  return type === undefined ? "" : ` (${type})`;
}

function reasonOf(error: unknown): string {
  return messageOf(error instanceof Error && error.cause instanceof Error ? error.cause : error);
}
