import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from "node:crypto";
import { inspect } from "node:util";
import type { PartnerId } from "../ids.ts";
import type { KeyKind } from "./partner.ts";

const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
/** The stored form: version ‖ id of the master key[4] ‖ nonce[12] ‖ ciphertext ‖ tag[16], AES-256-GCM. */
const version = 2;
const idBytes = 4;
const headBytes = 1 + idBytes;

/** The row that a sealed value is bound to: it opens nowhere else, so a row copied to another partner is worthless. */
export interface KeyPlace {
  readonly partnerId: PartnerId;
  readonly keyId: string;
  readonly kind: KeyKind;
}

/**
 * This master key does not open a stored value: another key, or a changed row. The message never contains the value.
 */
export class NotSealedByThisKey extends Error {
  override readonly name = "NotSealedByThisKey";
}

/** The database's keys are encrypted under another master key. */
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
 * The key that seals every partner's keys at rest. During a rotation there are several: one seals, all open. It never
 * prints itself.
 */
export class MasterKey {
  /** Hexadecimal: identifies the key in sealed values without revealing it. */
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
   * @param base64 the base64 of 32 bytes, as printed by `openssl rand -base64 32`
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

  /** @throws NotSealedByThisKey if it was sealed under another key, for another place, or was changed. */
  open(sealed: Buffer, place: KeyPlace): Buffer {
    return this.#open(sealed, keyContext(place));
  }

  /** Seals a value of the service itself, which opens only under this name. */
  sealNamed(plain: Buffer, name: string): Buffer {
    return this.#seal(plain, namedContext(name));
  }

  /** @throws NotSealedByThisKey as `open` */
  openNamed(sealed: Buffer, name: string): Buffer {
    return this.#open(sealed, namedContext(name));
  }

  /** Whether the current key sealed it, so that a rotation can skip it. */
  isCurrent(sealed: Buffer): boolean {
    return sealed.subarray(1, headBytes).toString("hex") === this.id;
  }

  /** A value by which a database recognises this key later. */
  sealCheck(): Buffer {
    return this.sealNamed(Buffer.from(checkName), checkName);
  }

  /** Whether the check value was sealed under this key, or under another one that it opens for. */
  fits(check: Buffer): boolean {
    try {
      return this.openNamed(check, checkName).toString() === checkName;
    } catch {
      return false;
    }
  }

  #seal(plain: Buffer, context: string): Buffer {
    return sealed(Buffer.concat([Buffer.of(version), Buffer.from(this.id, "hex")]), this.#key, plain, context);
  }

  #open(value: Buffer, context: string): Buffer {
    requireForm(value, headBytes, version);
    const key = this.#byId.get(value.subarray(1, headBytes).toString("hex"));
    if (key === undefined) throw new NotSealedByThisKey("the value was sealed under another master key");
    return opened(value, headBytes, key, context);
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

/** The id is derived from the key with a purpose of its own. */
function idOf(raw: Buffer): string {
  return Buffer.from(hkdfSync("sha256", raw, Buffer.alloc(0), "paybell master key id", idBytes)).toString("hex");
}

function namedContext(name: string): string {
  return `paybell value\n${name}`;
}

function keyContext({ partnerId, keyId, kind }: KeyPlace): string {
  return `paybell partner key\n${partnerId}\n${keyId}\n${kind}`;
}

export interface SealedValueStore {
  /** Stores `sealed` if there is none of this name yet; resolves to the stored one. */
  storeSealed(name: string, sealed: Buffer): Promise<Buffer>;
  /** The stored value; undefined if there is none. */
  sealedValue(name: string): Promise<Buffer | undefined>;
}

/**
 * Called at each start: a new database adopts this master key, any other must have been started with it. @throws
 * MasterKeyMismatch
 */
export async function requireFittingMasterKey(masterKey: MasterKey, store: SealedValueStore): Promise<void> {
  const sealed = await loadOrStore(store, checkName, () => masterKey.sealCheck());
  if (!masterKey.fits(sealed)) throw new MasterKeyMismatch();
}

/** A key of the service itself, created at its first start. A rotation of the master key does not change it. */
export async function loadOrCreateKey(masterKey: MasterKey, store: SealedValueStore, name: string): Promise<KeyObject> {
  const sealed = await loadOrStore(store, name, () => masterKey.sealNamed(randomBytes(keyBytes), name));
  return createSecretKey(masterKey.openNamed(sealed, name));
}

async function loadOrStore(store: SealedValueStore, name: string, make: () => Buffer): Promise<Buffer> {
  return (await store.sealedValue(name)) ?? (await store.storeSealed(name, make()));
}

export interface SealedKey extends KeyPlace {
  readonly material: Buffer;
}

/** The values stored under a master key. */
export interface ReSealStore {
  /** Keys of partners sealed by another master key than this one, in order, after `after`. */
  sealedByOthers(masterKeyId: string, after: SealedKey | undefined, limit: number): Promise<readonly SealedKey[]>;
  /** Values changed meanwhile are skipped: they are sealed under the newer key already. */
  reseal(keys: readonly { readonly from: SealedKey; readonly material: Buffer }[]): Promise<void>;
  namedValues(): Promise<readonly { readonly name: string; readonly sealed: Buffer }[]>;
  resealNamed(name: string, from: Buffer, to: Buffer): Promise<void>;
}

export interface ReSealed {
  /** Sealed again under the current master key. */
  readonly sealed: number;
  /** Unchanged, because none of the given master keys opens them. */
  readonly notOpened: number;
}

const batchRows = 100;

/**
 * Seals again under the current master key, a batch at a time. A service that has both keys runs meanwhile. After an
 * interruption the next call continues: each value contains its key's id.
 *
 * @param onBatch called after each batch with the number done
 */
export async function resealAll(
  store: ReSealStore,
  masterKey: MasterKey,
  onBatch: (sealed: number) => void = () => undefined,
): Promise<ReSealed> {
  let sealed = 0;
  let notOpened = 0;
  for (let after: SealedKey | undefined; ; ) {
    const page = await store.sealedByOthers(masterKey.id, after, batchRows);
    const opened = page.flatMap((from) => {
      const plain = openedBy(() => masterKey.open(from.material, from));
      return plain === undefined ? [] : [{ from, material: masterKey.seal(plain, from) }];
    });
    await store.reseal(opened);
    sealed += opened.length;
    notOpened += page.length - opened.length;
    after = page.at(-1);
    if (after === undefined) break;
    onBatch(sealed);
  }
  for (const { name, sealed: from } of await store.namedValues()) {
    if (masterKey.isCurrent(from)) continue;
    const plain = openedBy(() => masterKey.openNamed(from, name));
    if (plain === undefined) notOpened += 1;
    else await store.resealNamed(name, from, masterKey.sealNamed(plain, name));
  }
  return { sealed, notOpened };
}

function openedBy(open: () => Buffer): Buffer | undefined {
  try {
    return open();
  } catch (error) {
    if (error instanceof NotSealedByThisKey) return undefined;
    throw error;
  }
}

/** The stored form of a value under a key of the service itself: version ‖ nonce[12] ‖ ciphertext ‖ tag[16]. */
const valueVersion = 1;

/** @param context the row that the value is bound to: it opens nowhere else, so a row copied elsewhere is worthless */
export function sealValue(key: KeyObject, plain: Buffer, context: string): Buffer {
  return sealed(Buffer.of(valueVersion), key, plain, context);
}

/** @throws NotSealedByThisKey if it was sealed under another key, for another context, or was changed */
export function openValue(key: KeyObject, value: Buffer, context: string): Buffer {
  requireForm(value, 1, valueVersion);
  return opened(value, 1, key, context);
}

/** AES-256-GCM: head ‖ nonce ‖ ciphertext ‖ tag. */
function sealed(head: Buffer, key: KeyObject, plain: Buffer, context: string): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(Buffer.from(context));
  const ciphertext = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([head, nonce, ciphertext, cipher.getAuthTag()]);
}

function requireForm(value: Buffer, headLength: number, expected: number): void {
  if (value.length < headLength + nonceBytes + tagBytes) throw new NotSealedByThisKey("the sealed value is too short");
  if (value[0] !== expected) throw new NotSealedByThisKey(`the sealed value has the unknown version ${value[0]}`);
}

function opened(value: Buffer, headLength: number, key: KeyObject, context: string): Buffer {
  const nonce = value.subarray(headLength, headLength + nonceBytes);
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(context)).setAuthTag(value.subarray(-tagBytes));
  try {
    return Buffer.concat([decipher.update(value.subarray(headLength + nonceBytes, -tagBytes)), decipher.final()]);
  } catch {
    throw new NotSealedByThisKey("the value was not sealed under this key for this place");
  }
}
