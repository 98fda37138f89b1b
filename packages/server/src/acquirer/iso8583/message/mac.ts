import { createCipheriv, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../../clock.ts";

interface MacForm {
  readonly algorithm: MacAlgorithm;
  readonly padding: MacPadding;
}

/** As long as a late answer is still known: it may have its MAC under the key before. */
const formerForMs = 600_000;

/** The key of a link's MACs, and for a while the previous one, for answers to earlier requests. */
export class MacKeys {
  readonly #form: MacForm;
  readonly #clock: Clock;
  #key: Buffer;
  #mac: Mac;
  #former: { readonly mac: Mac; readonly untilMs: number } | undefined;

  /** @throws RangeError when the algorithm wants another length */
  constructor(form: MacForm, key: Buffer, clock: Clock) {
    this.#form = form;
    this.#clock = clock;
    this.#key = key;
    this.#mac = this.#of(key);
  }

  get inUse(): Buffer {
    return this.#key;
  }

  /**
   * From now on messages have a MAC under this key.
   *
   * @returns false for the key that is in use already
   * @throws RangeError as above, and nothing changes
   */
  replace(key: Buffer): boolean {
    if (key.equals(this.#key)) return false;
    const mac = this.#of(key);
    this.#former = { mac: this.#mac, untilMs: this.#clock.monotonicMs() + formerForMs };
    this.#key = key;
    this.#mac = mac;
    return true;
  }

  #of(key: Buffer): Mac {
    return new Mac(this.#form.algorithm, key, this.#form.padding);
  }

  of(bytes: Buffer): string {
    return this.#mac.of(bytes);
  }

  fits(bytes: Buffer, mac: string): boolean {
    if (this.#mac.fits(bytes, mac)) return true;
    const former = this.#former;
    return former !== undefined && former.untilMs > this.#clock.monotonicMs() && former.mac.fits(bytes, mac);
  }
}

/** The algorithm of the last field of a message (64 or 128), which proves that its sender has the key. */
export type MacAlgorithm = "x9.19" | "aes-cmac";

/**
 * The padding of X9.19's last block: zeros (ISO 9797-1 method 1), or a bit and zeros, in a block of their own if it is
 * full (method 2).
 */
type MacPadding = "zeros" | "bit";

/** Bytes that a field of ISO 8583 has for it; of a longer MAC they are the first. */
const macBytes = 8;

/** Computes and checks the MACs of one key. */
export class Mac {
  readonly #compute: (bytes: Buffer) => Buffer;

  /**
   * @param key for `x9.19` two DES keys (16 bytes), for `aes-cmac` 16, 24 or 32 bytes
   * @throws RangeError when the key has another length
   */
  constructor(algorithm: MacAlgorithm, key: Buffer, padding: MacPadding = "zeros") {
    if (algorithm === "x9.19") {
      if (key.length !== 16) throw new RangeError("a key for X9.19 has 16 bytes");
      this.#compute = (bytes) => retailMac(padding === "zeros" ? bytes : Buffer.concat([bytes, paddingBit]), key);
    } else {
      if (![16, 24, 32].includes(key.length)) throw new RangeError("a key for AES-CMAC has 16, 24 or 32 bytes");
      this.#compute = (bytes) => aesCmac(bytes, key);
    }
  }

  /** @returns eight bytes in upper-case hexadecimal */
  of(bytes: Buffer): string {
    return this.#compute(bytes).subarray(0, macBytes).toString("hex").toUpperCase();
  }

  /** Compares in constant time. */
  fits(bytes: Buffer, mac: string): boolean {
    const given = Buffer.from(mac, "hex");
    return given.length === macBytes && timingSafeEqual(given, this.#compute(bytes).subarray(0, macBytes));
  }
}

const paddingBit = Buffer.from([0x80]);
const desBlock = 8;
const aesBlock = 16;

/**
 * ANSI X9.19 (ISO 9797-1 algorithm 3, padded with zeros): DES-CBC with the first key, and triple DES with both for the
 * last block.
 */
export function retailMac(bytes: Buffer, key: Buffer): Buffer {
  const first = key.subarray(0, desBlock);
  const padded = Buffer.alloc(Math.max(desBlock, Math.ceil(bytes.length / desBlock) * desBlock));
  bytes.copy(padded);
  // Triple DES with one key three times is DES, which OpenSSL no longer offers by its name.
  const single = Buffer.concat([first, first, first]);
  const before = Buffer.concat([
    Buffer.alloc(desBlock),
    encrypt("des-ede3-cbc", single, padded.subarray(0, -desBlock), Buffer.alloc(desBlock)),
  ]);
  const last = padded.subarray(-desBlock);
  return encrypt("des-ede3-cbc", Buffer.concat([key, first]), last, before.subarray(-desBlock));
}

/** AES-CMAC: NIST SP 800-38B, RFC 4493. */
export function aesCmac(bytes: Buffer, key: Buffer): Buffer {
  const cipher = `aes-${key.length * 8}`;
  const doubled = doubleBlock(encrypt(`${cipher}-ecb`, key, Buffer.alloc(aesBlock), null));
  const blocks = Math.max(1, Math.ceil(bytes.length / aesBlock));
  const padded = Buffer.alloc(blocks * aesBlock);
  bytes.copy(padded);
  const isWhole = bytes.length === padded.length;
  if (!isWhole) padded[bytes.length] = 0x80;
  const mask = isWhole ? doubled : doubleBlock(doubled);
  for (let at = 0; at < aesBlock; at += 1) {
    const last = padded.length - aesBlock + at;
    padded[last] = (padded[last] ?? 0) ^ (mask[at] ?? 0);
  }
  return encrypt(`${cipher}-cbc`, key, padded, Buffer.alloc(aesBlock)).subarray(-aesBlock);
}

/** Times x in the field of 2^128: one bit to the left, and 0x87 where one falls out. */
function doubleBlock(block: Buffer): Buffer {
  const doubled = Buffer.alloc(aesBlock);
  let carry = 0;
  for (let at = aesBlock - 1; at >= 0; at -= 1) {
    const byte = block[at] ?? 0;
    doubled[at] = ((byte << 1) | carry) & 0xff;
    carry = byte >> 7;
  }
  if (carry === 1) doubled[aesBlock - 1] = (doubled[aesBlock - 1] ?? 0) ^ 0x87;
  return doubled;
}

function encrypt(algorithm: string, key: Buffer, bytes: Buffer, iv: Buffer | null): Buffer {
  const cipher = createCipheriv(algorithm, key, iv).setAutoPadding(false);
  return Buffer.concat([cipher.update(bytes), cipher.final()]);
}
