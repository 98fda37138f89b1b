import { createCipheriv, createDecipheriv, timingSafeEqual } from "node:crypto";
import { aesCmac, type MacAlgorithm } from "./mac.ts";

/** The encryption of a key that comes over the link. */
export type KeyEncryption = "tdes-ecb" | "aes-ecb" | "aes-kw";

/** Opens keys that come over the link. Another one may leave the key-encryption key in a security module. */
export interface KeyOpener {
  /**
   * @param checkValue in hexadecimal; empty: the host sends none
   * @throws RangeError if it cannot be decrypted, or the check value does not match. Its message has no key.
   */
  open(encrypted: Buffer, checkValue: string): Buffer | Promise<Buffer>;
}

const keyWrapIv = Buffer.from("a6a6a6a6a6a6a6a6", "hex");
const blockBytes = 16;

/** Opens keys with a key-encryption key that this process holds. */
export class HeldKeyOpener implements KeyOpener {
  readonly #encryption: KeyEncryption;
  readonly #algorithm: MacAlgorithm;
  readonly #key: Buffer;

  /** @throws RangeError when the key has another length: for TDES 16 or 24 bytes, for AES 16, 24 or 32 */
  constructor(encryption: KeyEncryption, algorithm: MacAlgorithm, key: Buffer) {
    const lengths = encryption === "tdes-ecb" ? [16, 24] : [16, 24, 32];
    if (!lengths.includes(key.length)) {
      throw new RangeError(`a key-encryption key for ${encryption} has ${lengths.join(" or ")} bytes`);
    }
    this.#encryption = encryption;
    this.#algorithm = algorithm;
    this.#key = key;
  }

  open(encrypted: Buffer, checkValue: string): Buffer {
    const key = this.#decrypted(encrypted);
    const expected = checkValueOf(this.#algorithm, key).subarray(0, checkValue.length / 2);
    const given = Buffer.from(checkValue, "hex");
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      throw new RangeError("the check value does not match the key");
    }
    return key;
  }

  #decrypted(encrypted: Buffer): Buffer {
    const key = this.#key;
    try {
      if (this.#encryption === "aes-kw") {
        const wrapped = createDecipheriv(`id-aes${key.length * 8}-wrap` as "aes-128-ecb", key, keyWrapIv);
        return Buffer.concat([wrapped.update(encrypted), wrapped.final()]);
      }
      const isDes = this.#encryption === "tdes-ecb";
      const cipher = isDes ? "des-ede3" : `aes-${key.length * 8}-ecb`;
      const decipher = createDecipheriv(cipher, isDes ? tripled(key) : key, null).setAutoPadding(false);
      return Buffer.concat([decipher.update(encrypted), decipher.final()]);
    } catch (error) {
      throw new RangeError("the key cannot be decrypted", { cause: error });
    }
  }
}

/** The check value of a key: for DES the encryption of zeros, for AES their CMAC (ANSI X9.24). */
export function checkValueOf(algorithm: MacAlgorithm, key: Buffer): Buffer {
  if (algorithm === "aes-cmac") return aesCmac(Buffer.alloc(blockBytes), key);
  const cipher = createCipheriv("des-ede3", tripled(key), null).setAutoPadding(false);
  return cipher.update(Buffer.alloc(8));
}

/** Two keys become three: the first is used again. */
function tripled(key: Buffer): Buffer {
  return key.length === 16 ? Buffer.concat([key, key.subarray(0, 8)]) : key;
}
