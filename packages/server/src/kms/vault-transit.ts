import { readFile } from "node:fs/promises";
import { messageOf } from "../errors.ts";
import { type KeyService, KeyServiceError } from "./key-service.ts";

export interface VaultTransitOptions {
  /** Such as https://vault.internal:8200. */
  readonly url: string;
  /** The mount path of the secrets engine. */
  readonly mount: string;
  /** The transit key's name. */
  readonly key: string;
  /** Read again for each request, because an agent renews it. */
  readonly tokenFile: string;
  readonly timeoutMs?: number;
  /** Default: that of Node. */
  readonly fetch?: typeof fetch;
}

const answerBytesMax = 65_536;

/** Vault's transit secrets engine, and compatible services (OpenBao): the key never leaves it. */
export class VaultTransit implements KeyService {
  readonly #options: VaultTransitOptions;

  constructor(options: VaultTransitOptions) {
    this.#options = options;
  }

  async wrap(key: Buffer): Promise<string> {
    const { ciphertext } = await this.#ask("encrypt", { plaintext: key.toString("base64") });
    if (typeof ciphertext !== "string")
      throw new KeyServiceError("The key service answered encrypt without a ciphertext.");
    return ciphertext;
  }

  async unwrap(wrapped: string): Promise<Buffer> {
    const { plaintext } = await this.#ask("decrypt", { ciphertext: wrapped });
    if (typeof plaintext !== "string")
      throw new KeyServiceError("The key service answered decrypt without a plaintext.");
    return Buffer.from(plaintext, "base64");
  }

  async #ask(action: "encrypt" | "decrypt", body: object): Promise<Readonly<Record<string, unknown>>> {
    const { url, mount, key, tokenFile, timeoutMs = 10_000, fetch: fetchBy = fetch } = this.#options;
    const address = new URL(`/v1/${mount}/${action}/${encodeURIComponent(key)}`, url);
    try {
      const token = (await readFile(tokenFile, "utf8")).trim();
      const answer = await fetchBy(address, {
        method: "POST",
        headers: { "x-vault-token": token, "content-type": "application/json" },
        body: JSON.stringify(body),
        redirect: "error",
        signal: AbortSignal.timeout(timeoutMs),
      });
      const text = await readBounded(answer);
      // Its error message may quote what was sent.
      if (!answer.ok) throw new KeyServiceError(`The key service answered ${action} with status ${answer.status}.`);
      if (text === undefined) {
        const remedy = "does PAYBELL_KMS_URL lead to Vault?";
        throw new KeyServiceError(`The key service answered ${action} with over 64 KiB: ${remedy}`);
      }
      const { data } = JSON.parse(text) as { data?: Readonly<Record<string, unknown>> };
      return data ?? {};
    } catch (error) {
      if (error instanceof KeyServiceError) throw error;
      const reason = error instanceof SyntaxError ? "its answer is not JSON" : reasonOf(error);
      throw new KeyServiceError(`The key service at ${address.origin} could not be asked: ${reason}.`);
    }
  }
}

/** Undefined if it is longer than any answer of Vault. The rest is not read. */
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

function reasonOf(error: unknown): string {
  return messageOf(error instanceof Error && error.cause instanceof Error ? error.cause : error);
}
