import type { IsoMessage } from "./message/codec.ts";
import { IsoFormatError } from "./message/error.ts";
import type { KeyOpener } from "./message/key-opener.ts";
import type { MacKeys } from "./message/mac-keys.ts";
import type { KeyExchangeProfile } from "./profile/schema.ts";

/** Where a key that came over the link is kept, for the next start and for other instances. */
export interface KeptKey {
  /** Undefined: none has come since the registered one was given. */
  read(): Promise<Buffer | undefined>;
  /** Durable, and told to all instances, when it resolves. */
  keep(key: Buffer): Promise<void>;
}

export interface KeyExchangeParts {
  readonly profile: KeyExchangeProfile;
  readonly opener: KeyOpener;
  readonly keys: MacKeys;
  /** The registered one, with which a connection begins where its keys are its own. */
  readonly registered: Buffer;
  readonly kept: KeptKey | undefined;
}

/** Takes new keys of the MACs that a host sends, under a key-encryption key, as its profile says. */
export class KeyExchange {
  readonly #parts: KeyExchangeParts;

  constructor(parts: KeyExchangeParts) {
    this.#parts = parts;
  }

  /** How often a new key is asked for; null: once for each connection. */
  get requestEveryMs(): number | null {
    return this.#parts.profile.requestEveryMs;
  }

  /** Before a connection signs on: under the registered key, or the last one that came. */
  async begin(): Promise<void> {
    const { keys, registered, kept } = this.#parts;
    keys.replace((await kept?.read()) ?? registered);
  }

  /** Another instance may have kept a new one. */
  async reread(): Promise<void> {
    const key = await this.#parts.kept?.read();
    if (key !== undefined) this.#parts.keys.replace(key);
  }

  /** Whether the host sends a key with this request of its own. */
  brings({ mti, fields }: IsoMessage): boolean {
    const { field, values } = this.#parts.profile.brings;
    return mti.startsWith("08") && values.includes(fields.get(field) ?? "");
  }

  /**
   * Takes the key of a message. It is kept before anything is sent under it.
   *
   * @returns what puts it into use
   * @throws IsoFormatError when the message has none; RangeError when it does not open
   */
  async take(message: IsoMessage): Promise<() => void> {
    const { profile, opener, keys, kept } = this.#parts;
    const encrypted = partOf(message, profile.key);
    if (encrypted === "") throw new IsoFormatError("the message brings no key");
    const checkValue = profile.checkValue === null ? "" : partOf(message, profile.checkValue);
    const key = await opener.open(Buffer.from(encrypted, "hex"), checkValue);
    await kept?.keep(key);
    return () => keys.replace(key);
  }
}

function partOf({ fields }: IsoMessage, { field, from, characters }: KeyExchangeProfile["key"]): string {
  const part = (fields.get(field) ?? "").slice(from, characters === null ? undefined : from + characters);
  return /^(?:[0-9A-Fa-f]{2})*$/.test(part) ? part : "";
}
