import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from "node:crypto";
import { inspect } from "node:util";
import type { PartnerId } from "../ids.ts";
import type { KeyKind } from "./partner.ts";

const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
/** Of the stored form: version ‖ nonce[12] ‖ ciphertext ‖ tag[16], AES-256-GCM. */
const version = 1;

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
        "Start with the PAYBELL_MASTER_KEY that this database was first started with.",
    );
  }
}

/** The key under which every partner's keys are sealed at rest. It never prints itself. */
export class MasterKey {
  readonly #key: KeyObject;

  /** @throws TypeError naming the expected length, never the value. */
  constructor(raw: Buffer) {
    if (raw.length !== keyBytes) throw new TypeError(`a master key must have ${keyBytes} bytes, not ${raw.length}`);
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

  /** A key of its own for another purpose; whoever has it learns nothing of this one. */
  derive(purpose: string): KeyObject {
    const derived = hkdfSync("sha256", this.#key, Buffer.alloc(0), `paybell ${purpose}`, keyBytes);
    return createSecretKey(Buffer.from(derived));
  }

  /** A value by which a database recognises this key later. */
  sealCheck(): Buffer {
    return this.#seal(Buffer.from(checkText), checkText);
  }

  /** Whether the check value was sealed under this key. */
  fits(check: Buffer): boolean {
    try {
      return this.#open(check, checkText).toString() === checkText;
    } catch {
      return false;
    }
  }

  #seal(plain: Buffer, context: string): Buffer {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv("aes-256-gcm", this.#key, nonce, { authTagLength: tagBytes });
    cipher.setAAD(Buffer.from(context));
    const ciphertext = Buffer.concat([cipher.update(plain), cipher.final()]);
    return Buffer.concat([Buffer.of(version), nonce, ciphertext, cipher.getAuthTag()]);
  }

  #open(sealed: Buffer, context: string): Buffer {
    if (sealed.length < 1 + nonceBytes + tagBytes) throw new NotSealedByThisKey("the sealed value is too short");
    if (sealed[0] !== version) throw new NotSealedByThisKey(`the sealed value has the unknown version ${sealed[0]}`);
    const nonce = sealed.subarray(1, 1 + nonceBytes);
    const decipher = createDecipheriv("aes-256-gcm", this.#key, nonce, { authTagLength: tagBytes });
    decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(-tagBytes));
    try {
      return Buffer.concat([decipher.update(sealed.subarray(1 + nonceBytes, -tagBytes)), decipher.final()]);
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

const checkText = "paybell master key check";

function keyContext({ partnerId, keyId, kind }: KeyPlace): string {
  return `paybell partner key\n${partnerId}\n${keyId}\n${kind}`;
}

/** Where a database keeps its check value. */
export interface MasterKeyCheckStore {
  /** Keeps `check` when there is none yet; resolves to the one that is kept then. */
  keepMasterKeyCheck(check: Buffer): Promise<Buffer>;
  /** The one that is kept; undefined in a database that never had a master key. */
  masterKeyCheck(): Promise<Buffer | undefined>;
}

/**
 * At each start: a new database takes this master key as its own, any other must have been started with it.
 *
 * @throws MasterKeyMismatch
 */
export async function requireFittingMasterKey(masterKey: MasterKey, store: MasterKeyCheckStore): Promise<void> {
  const kept = (await store.masterKeyCheck()) ?? (await store.keepMasterKeyCheck(masterKey.sealCheck()));
  if (!masterKey.fits(kept)) throw new MasterKeyMismatch();
}
