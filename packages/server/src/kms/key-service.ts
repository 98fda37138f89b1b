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
