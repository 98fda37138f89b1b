/**
 * Where a master key is kept encrypted at rest. A service asks it once, at its start: what is sealed afterwards is
 * sealed under the master key in memory, so no command and no delivery waits for it.
 */
export interface KeyService {
  /** @returns the text in which the key may be stored, such as `vault:v1:…` */
  wrap(key: Buffer): Promise<string>;
  /** @throws KeyServiceError */
  unwrap(wrapped: string): Promise<Buffer>;
}

/** The key service did not answer as it should. It says where it was asked and how, never a key or a token. */
export class KeyServiceError extends Error {
  override readonly name = "KeyServiceError";
  readonly code = "key_service";
  readonly remedy = "Check PAYBELL_KMS_URL, the token in PAYBELL_KMS_TOKEN_FILE and its policy, and the key's name.";
}
