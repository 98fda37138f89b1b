import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from "node:crypto";
import { inspect } from "node:util";
import type { PartnerId } from "../ids.ts";
import type { KeyKind } from "./partner.ts";

const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
/** Of the stored form: version ‖ id of the master key[4] ‖ nonce[12] ‖ ciphertext ‖ tag[16], AES-256-GCM. */
const version = 2;
const idBytes = 4;
const headBytes = 1 + idBytes;

/** What a sealed value belongs to: it opens nowhere else, so that a row copied to another partner is worth nothing. */
export interface KeyPlace {
  readonly partnerId: PartnerId;
  readonly keyId: string;
  readonly kind: KeyKind;
}

/** A stored value that this master key does not open: another key, or a changed row. Never says what it holds. */
export class NotSealedByThisKey extends Error {
  override readonly name = "NotSealedByThisKey";
}

/** The database's keys are sealed under another master key. */
export class MasterKeyMismatch extends Error {
  override readonly name = "MasterKeyMismatch";
  readonly code = "master_key_mismatch";

  constructor() {
    super(
      "The master key does not fit this database: its keys were sealed under another one. " +
        "Start with the PAYBELL_MASTER_KEY that this database was last started with.",
    );
  }
}

/**
 * The key under which every partner's keys are sealed at rest. While it is rotated there are several: one seals, all
 * open. It never prints itself.
 */
export class MasterKey {
  /** Hexadecimal: which key sealed a value, told without giving the key away. */
  readonly id: string;
  readonly #key: KeyObject;
  readonly #byId = new Map<string, KeyObject>();

  /**
   * @param others seal nothing, and open what they sealed
   * @throws TypeError naming the expected length, never the value.
   */
  constructor(raw: Buffer, others: readonly Buffer[] = []) {
    for (const each of [...others, raw]) {
      if (each.length !== keyBytes) throw new TypeError(`a master key must have ${keyBytes} bytes, not ${each.length}`);
      this.#byId.set(idOf(each), createSecretKey(each));
    }
    this.id = idOf(raw);
    this.#key = createSecretKey(raw);
  }

  /**
   * @param base64 the base64 of 32 bytes, as `openssl rand -base64 32` gives it
   * @throws TypeError naming the expected shape, never the value.
   */
  static parse(base64: string): MasterKey {
    const raw = Buffer.from(base64, "base64");
    const canonical = raw.toString("base64");
    if (raw.length !== keyBytes || canonical !== base64.trim()) {
      throw new TypeError(
        `a master key must be the base64 of ${keyBytes} bytes, such as openssl rand -base64 32 gives`,
      );
    }
    return new MasterKey(raw);
  }

  static generate(): MasterKey {
    return new MasterKey(randomBytes(keyBytes));
  }

  seal(plain: Buffer, place: KeyPlace): Buffer {
    return this.#seal(plain, keyContext(place));
  }

  /** @throws NotSealedByThisKey when it was sealed under another key, for another place, or was changed. */
  open(sealed: Buffer, place: KeyPlace): Buffer {
    return this.#open(sealed, keyContext(place));
  }

  /** For a value of the service itself, which opens under no other name. */
  sealNamed(plain: Buffer, name: string): Buffer {
    return this.#seal(plain, namedContext(name));
  }

  /** @throws NotSealedByThisKey as `open` */
  openNamed(sealed: Buffer, name: string): Buffer {
    return this.#open(sealed, namedContext(name));
  }

  /** Whether the key that seals now sealed it: nothing is to be done for it by a rotation. */
  isCurrent(sealed: Buffer): boolean {
    return sealed.subarray(1, headBytes).toString("hex") === this.id;
  }

  /** A value by which a database recognises this key later. */
  sealCheck(): Buffer {
    return this.sealNamed(Buffer.from(checkName), checkName);
  }

  /** Whether the check value was sealed under this key, or another one that it opens for. */
  fits(check: Buffer): boolean {
    try {
      return this.openNamed(check, checkName).toString() === checkName;
    } catch {
      return false;
    }
  }

  #seal(plain: Buffer, context: string): Buffer {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv("aes-256-gcm", this.#key, nonce, { authTagLength: tagBytes });
    cipher.setAAD(Buffer.from(context));
    const ciphertext = Buffer.concat([cipher.update(plain), cipher.final()]);
    return Buffer.concat([Buffer.of(version), Buffer.from(this.id, "hex"), nonce, ciphertext, cipher.getAuthTag()]);
  }

  #open(sealed: Buffer, context: string): Buffer {
    if (sealed.length < headBytes + nonceBytes + tagBytes)
      throw new NotSealedByThisKey("the sealed value is too short");
    if (sealed[0] !== version) throw new NotSealedByThisKey(`the sealed value has the unknown version ${sealed[0]}`);
    const key = this.#byId.get(sealed.subarray(1, headBytes).toString("hex"));
    if (key === undefined) throw new NotSealedByThisKey("the value was sealed under another master key");
    const nonce = sealed.subarray(headBytes, headBytes + nonceBytes);
    const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
    decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(-tagBytes));
    try {
      return Buffer.concat([decipher.update(sealed.subarray(headBytes + nonceBytes, -tagBytes)), decipher.final()]);
    } catch {
      throw new NotSealedByThisKey("the value was not sealed under this master key for this place");
    }
  }

  toString(): string {
    return "[MasterKey]";
  }

  toJSON(): string {
    return "[MasterKey]";
  }

  [inspect.custom](): string {
    return "[MasterKey]";
  }
}

const checkName = "check";

/** Of a value that is derived from the key for this alone. */
function idOf(raw: Buffer): string {
  return Buffer.from(hkdfSync("sha256", raw, Buffer.alloc(0), "paybell master key id", idBytes)).toString("hex");
}

function namedContext(name: string): string {
  return `paybell value\n${name}`;
}

function keyContext({ partnerId, keyId, kind }: KeyPlace): string {
  return `paybell partner key\n${partnerId}\n${keyId}\n${kind}`;
}

/** Where a database keeps values of the service itself. */
export interface SealedValueStore {
  /** Keeps `sealed` when there is none of this name yet; resolves to the one that is kept then. */
  keepSealed(name: string, sealed: Buffer): Promise<Buffer>;
  /** The one that is kept; undefined when there is none. */
  sealedValue(name: string): Promise<Buffer | undefined>;
}

/**
 * At each start: a new database takes this master key as its own, any other must have been started with it.
 *
 * @throws MasterKeyMismatch
 */
export async function requireFittingMasterKey(masterKey: MasterKey, store: SealedValueStore): Promise<void> {
  const kept = await keptOr(store, checkName, () => masterKey.sealCheck());
  if (!masterKey.fits(kept)) throw new MasterKeyMismatch();
}

/** A key of the service's own, made at its first start. It stays when the master key is rotated. */
export async function keptKey(masterKey: MasterKey, store: SealedValueStore, name: string): Promise<KeyObject> {
  const kept = await keptOr(store, name, () => masterKey.sealNamed(randomBytes(keyBytes), name));
  return createSecretKey(masterKey.openNamed(kept, name));
}

async function keptOr(store: SealedValueStore, name: string, make: () => Buffer): Promise<Buffer> {
  return (await store.sealedValue(name)) ?? (await store.keepSealed(name, make()));
}
