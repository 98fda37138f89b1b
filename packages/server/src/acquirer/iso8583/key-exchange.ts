import { createCipheriv, createDecipheriv, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../clock.ts";
import { type IsoMessage, isNetworkMessage } from "./message/codec.ts";
import { IsoFormatError } from "./message/element.ts";
import { aesCmac, Mac, type MacAlgorithm, type MacKeys } from "./message/mac.ts";
import type { KeyExchangeProfile } from "./profile/schema.ts";

/** The store of a key that came over the link, for the next start and for other instances. */
export interface MacKeyStore {
  /**
   * Ends with the last key that is taken up, or put back, over any link with this store: one at a time, because one that the
   * host does not use would be put back in place of another. What is read before is older, or not yet approved.
   */
  taking: Promise<void>;
  /** Undefined: none has come since the key was registered. What could not be put back is put back first. */
  read(): Promise<Buffer | undefined>;
  /** Durable, and announced to all instances, when it resolves. */
  keep(key: Buffer): Promise<void>;
  /**
   * Replaces what was kept last by the key before it, unless that was replaced already, or never kept. If that fails, it is
   * repeated before anything is read or kept.
   */
  putBack(): Promise<void>;
}

interface KeyExchangeParts {
  readonly profile: KeyExchangeProfile;
  readonly opener: KeyOpener;
  readonly keys: MacKeys;
  /** The registered one, with which a connection begins if keys belong to connections. */
  readonly registered: Buffer;
  readonly kept: MacKeyStore | undefined;
  readonly clock: Pick<Clock, "nowMs">;
}

const registeredKey = "the registered MAC key";
const storedKey = "the MAC key that was kept";

/** Applies new MAC keys that a host sends, encrypted under a key-encryption key, as its profile says. */
export class KeyExchange {
  readonly #parts: KeyExchangeParts;
  #inUse = registeredKey;
  /** Empty: none was, since the one in use came. */
  #refused = "";
  readonly #takes: Pick<MacKeyStore, "taking">;
  /** The end of each request for a key, the one under way first. */
  readonly #asking: Promise<void>[] = [];

  constructor(parts: KeyExchangeParts) {
    this.#parts = parts;
    this.#takes = parts.kept ?? { taking: Promise.resolve() };
  }

  /** The interval of requests for a new key; null: once for each connection. */
  get requestEveryMs(): number | null {
    return this.#parts.profile.requestEveryMs;
  }

  /** Before a connection signs on: under the registered key, or the last one that came. */
  async begin(): Promise<void> {
    const { keys, registered, kept } = this.#parts;
    const key = kept && (await this.#read(kept));
    if (key === undefined) this.#inUse = registeredKey;
    else if (this.#inUse === registeredKey) this.#inUse = storedKey;
    keys.replace(key ?? registered);
  }

  /** In words, for the operator: which key is in use, and whether a later one was refused. */
  detail(): string {
    return this.#refused === "" ? this.#inUse : `${this.#inUse}; ${this.#refused}`;
  }

  /** Another instance may have kept a new one. */
  async reread(): Promise<void> {
    const { keys, kept } = this.#parts;
    const key = kept && (await this.#read(kept));
    if (key !== undefined && keys.replace(key)) this.#taken("another instance took up");
  }

  /** Whether the host sends a key with this request of its own. */
  brings({ mti, fields }: IsoMessage): boolean {
    const { field, values } = this.#parts.profile.brings;
    return isNetworkMessage(mti) && values.includes(fields.get(field) ?? "");
  }

  /** Set while the host is asked for a key: it ends once that, which the host uses from its answer on, is taken up. */
  get asking(): Promise<void> | undefined {
    return this.#asking[0];
  }

  /** Takes up the key of the answer, which the host uses already. One at a time: of two, the host uses the last. */
  async ask(request: () => Promise<IsoMessage>): Promise<void> {
    const before = this.#asking.at(-1) ?? Promise.resolve();
    const asked = before.then(async () => this.take(await request()));
    const ended = asked.catch(() => undefined);
    this.#asking.push(ended);
    await ended;
    this.#asking.shift();
    return asked;
  }

  /**
   * Takes up the key of a message, after those that came before it. It is kept before anything is sent under it.
   *
   * @param approve tells the host that it came, under the key before it; false if that cannot be sent: then the host
   * does not use it. Absent: the host uses it already
   * @throws IsoFormatError if the message has none; RangeError if it cannot be decrypted
   */
  take(message: IsoMessage, approve?: () => boolean): Promise<void> {
    const done = this.#takes.taking.then(() => this.#take(message, approve));
    this.#takes.taking = done.catch(() => undefined);
    return done;
  }

  async #take(message: IsoMessage, approve?: () => boolean): Promise<void> {
    const { profile, opener, keys, kept } = this.#parts;
    const encrypted = partOf(message, profile.key);
    if (encrypted === "") throw new IsoFormatError("the message contains no key");
    const checkValue = profile.checkValue && partOf(message, profile.checkValue);
    const key = opener.open(Buffer.from(encrypted, "hex"), checkValue);
    try {
      await kept?.keep(key);
      if (approve?.() === false) throw new Error("its connection ended before it was answered");
    } catch (error) {
      if (approve !== undefined) await kept?.putBack().catch(() => undefined);
      throw error;
    }
    keys.replace(key);
    this.#taken("came");
  }

  /** What is stored, once no key is being taken up. */
  async #read(kept: MacKeyStore): Promise<Buffer | undefined> {
    for (;;) {
      const { taking } = kept;
      await taking;
      const key = await kept.read();
      if (taking === kept.taking) return key;
    }
  }

  refuse(why: string): void {
    this.#refused = `the key of ${this.#now()} was refused: ${why}`;
  }

  #taken(how: string): void {
    this.#inUse = `the MAC key that ${how} at ${this.#now()}`;
    this.#refused = "";
  }

  #now(): string {
    return new Date(this.#parts.clock.nowMs()).toISOString();
  }
}

function partOf({ fields }: IsoMessage, { field, from, characters }: KeyExchangeProfile["key"]): string {
  const part = (fields.get(field) ?? "").slice(from, characters === null ? undefined : from + characters);
  return /^(?:[0-9A-Fa-f]{2})*$/.test(part) ? part : "";
}

type KeyEncryption = KeyExchangeProfile["encryption"];

const keyWrapIv = Buffer.from("a6a6a6a6a6a6a6a6", "hex");
const blockBytes = 16;

/** Opens keys that come over the link, with their key-encryption key. */
export class KeyOpener {
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

  /**
   * @param checkValue in hexadecimal; null: the host sends none
   * @throws RangeError if it cannot be decrypted, the check value does not match or is missing, or no MAC can have it.
   * Its message has no key.
   */
  open(encrypted: Buffer, checkValue: string | null): Buffer {
    const key = this.#decrypted(encrypted);
    new Mac(this.#algorithm, key);
    if (checkValue === null) return key;
    const given = Buffer.from(checkValue, "hex");
    const expected = checkValueOf(this.#algorithm, key).subarray(0, given.length);
    if (given.length === 0) throw new RangeError("the message contains no check value");
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
