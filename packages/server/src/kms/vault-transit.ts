import { askForObject, type KeyService, KeyServiceError, readTokenOf, timeoutDefaultMs } from "./key-service.ts";

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
    if (!wrapped.startsWith("vault:")) throw new KeyServiceError("Vault did not wrap this master key.");
    const { plaintext } = await this.#ask("decrypt", { ciphertext: wrapped });
    if (typeof plaintext !== "string")
      throw new KeyServiceError("The key service answered decrypt without a plaintext.");
    return Buffer.from(plaintext, "base64");
  }

  async #ask(action: "encrypt" | "decrypt", body: object): Promise<Readonly<Record<string, unknown>>> {
    const { url, mount, key, tokenFile, timeoutMs = timeoutDefaultMs, fetch: fetchBy = fetch } = this.#options;
    const address = new URL(`/v1/${mount}/${action}/${encodeURIComponent(key)}`, url);
    const token = await readTokenOf(tokenFile);
    const headers = { "x-vault-token": token, "content-type": "application/json" };
    const request = { url: address, action, headers, body: JSON.stringify(body), timeoutMs, fetch: fetchBy };
    return Object((await askForObject(request))["data"]) as Readonly<Record<string, unknown>>;
  }
}
