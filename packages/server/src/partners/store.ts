import type { KeyId, NotificationId, PartnerId } from "../ids.ts";
import type { SealedValueStore } from "./master-key.ts";
import type { ApiKeyScope, KeyKind, PartnerSettings, PartnerState, Pause } from "./partner.ts";
import type { Terminal } from "./terminal.ts";

/** Stores partners. Every change is durable when it resolves. */
export interface PartnerStore extends PartnerStates, SealCounts, SealedValueStore, ApiKeyStore {
  insert(partner: NewPartner): Promise<StoredPartner>;
  /** Changes one partner under its row's lock: `next` gets the current state. Undefined if there is none. */
  change(
    id: PartnerId,
    next: (standing: StoredPartner) => { readonly state?: PartnerState; readonly settings?: PartnerSettings },
  ): Promise<StoredPartner | undefined>;
  find(id: PartnerId): Promise<StoredPartner | undefined>;
  /** In the order of registration, after `after`. */
  list(after: PartnerId | undefined, limit: number): Promise<readonly StoredPartner[]>;
  /**
   * Adds a key version under the partner's row lock, and ends every other version of its kind when the overlap ends, or
   * earlier if that was set before. Additional API keys are unchanged. `activeAtOnce`: it is used from now on, beside
   * the old one; otherwise it takes over when the overlap ends. Undefined if there is no such partner.
   */
  rotate(id: PartnerId, key: NewKey, overlapS: number, activeAtOnce: boolean): Promise<Rotation | undefined>;
  /** Ends the partner's client certificate now, and stores the new one, if any. Undefined: no such partner. */
  replaceCallbackKey(id: PartnerId, key: CallbackKeyToStore | null): Promise<StoredPartner | undefined>;
}

export interface ApiKeyStore {
  /** @param keysMax the maximum number of valid API keys of a partner */
  addApiKey(
    partnerId: PartnerId,
    key: ApiKeyToStore,
    keysMax: number,
  ): Promise<"added" | "too many" | "no such partner">;
  /**
   * @param judge throws if a valid key must not end; it gets the partner's other valid API keys, which no concurrent
   *   call changes
   * @returns false if the partner has no such API key
   */
  endApiKey(
    partnerId: PartnerId,
    keyId: KeyId,
    judge: (key: StoredKey, others: readonly StoredKey[]) => void,
  ): Promise<boolean>;
  apiKeyUsed(partnerId: PartnerId, keyId: KeyId): Promise<void>;
}

export interface ApiKeyToStore {
  readonly id: KeyId;
  /** Its SHA-256. */
  readonly material: Buffer;
  readonly name: string;
  readonly scopes: readonly ApiKeyScope[];
  /** Null: it does not expire. */
  readonly expiresInS: number | null;
  /** The key with which it expires at the latest. */
  readonly maker: KeyId | null;
}

export interface CallbackKeyToStore {
  readonly id: KeyId;
  /** Sealed under the master key. */
  readonly material: Buffer;
  readonly endsAt: Date;
}

/** The states that the directory reads repeatedly. */
export interface PartnerStates {
  /** A text for each partner that changes whenever the result of `load` does, also by the passing of time. */
  fingerprints(ids: readonly PartnerId[]): Promise<ReadonlyMap<PartnerId, string>>;
  load(ids: readonly PartnerId[]): Promise<readonly LoadedPartner[]>;
  /** The partners that these hashes of API keys ever belonged to, by the hash's hexadecimal form. */
  partnersByApiKey(hashes: readonly Buffer[]): Promise<ReadonlyMap<string, PartnerId>>;
}

export interface SealCounts {
  /** Adds to the count of a key version's seals; resolves to the sum, undefined if there is no such version. */
  addSeals(partnerId: PartnerId, keyId: string, count: number): Promise<number | undefined>;
}

export interface NewPartner {
  readonly id: PartnerId;
  readonly settings: PartnerSettings;
  readonly keys: readonly NewKey[];
}

export interface NewKey {
  readonly id: KeyId;
  readonly kind: KeyKind;
  /** Sealed under the master key; for an API key its SHA-256. */
  readonly material: Buffer;
}

export interface StoredPartner {
  readonly id: PartnerId;
  readonly state: PartnerState;
  readonly settings: PartnerSettings;
  readonly keys: readonly StoredKey[];
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export interface StoredKey {
  readonly id: KeyId;
  readonly kind: KeyKind;
  readonly activeFrom: Date;
  readonly expiresAt: Date | null;
  readonly seals: number;
  readonly createdAt: Date;
  /** For an additional API key; otherwise empty. */
  readonly name: string;
  /** For an API key; null: everything. */
  readonly scopes: readonly ApiKeyScope[] | null;
  readonly lastUsedAt: Date | null;
}

export interface Rotation {
  readonly activeFrom: Date;
  readonly expiresOld: Date;
}

/** A partner with its currently valid key versions, by the database's clock, the one activated last first. */
export interface LoadedPartner {
  readonly id: PartnerId;
  readonly fingerprint: string;
  readonly state: PartnerState;
  readonly settings: PartnerSettings;
  readonly keys: readonly LoadedKey[];
  readonly pauses: readonly Pause[];
}

export interface LoadedKey extends NewKey {
  readonly scopes?: readonly ApiKeyScope[] | null;
}

export interface TerminalStore {
  /**
   * Registers a terminal, or changes its registration; its numbers and its batch are unchanged. A terminal that another
   * partner has only claimed, by a command, is taken from it unless money is open on it.
   *
   * @param preAuthDays how long a PreAuth counts as open
   */
  upsert(partnerId: PartnerId, terminal: Terminal, preAuthDays: number): Promise<UpsertedTerminal>;
  /** Releases a terminal for other partners, and forgets its numbers. */
  remove(partnerId: PartnerId, tid: string, preAuthDays: number): Promise<RemovedTerminal>;
  find(partnerId: PartnerId, tid: string): Promise<Terminal | undefined>;
  list(partnerId: PartnerId, after: string | undefined, limit: number): Promise<readonly Terminal[]>;
  /** By tid, mid or the beginning of the merchant's name, of all partners. */
  search(text: string, limit: number): Promise<readonly FoundTerminal[]>;
}

export interface FoundTerminal extends Terminal {
  readonly partnerId: PartnerId;
}

export type UpsertedTerminal =
  | { readonly outcome: "put"; readonly terminal: Terminal }
  /** It belongs to another partner: by registration, or by its commands, and money is open on it. */
  | { readonly outcome: "taken"; readonly holder: PartnerId; readonly isRegistered: boolean }
  /** Its mid or acquirer would change while transactions of the old one are open. */
  | { readonly outcome: "busy" }
  /** No acquirer is registered under this name. */
  | { readonly outcome: "no_such_acquirer" };

export type RemovedTerminal =
  | { readonly outcome: "removed"; readonly terminal: Terminal }
  /** Its batch is not empty or its late settlement not reported, a PreAuth is open, or something is in flight. */
  | { readonly outcome: "busy" }
  | { readonly outcome: "not_found" };

/** Deliveries fail; parking begins soon; everything is received again. */
export type PartnerMessageKind = "failing" | "parking" | "recovered";

export type PartnerChannel = "mail" | "webhook";

/** A partner that was told of trouble on a channel, and the oldest notification that failed, as it was found last. */
export interface InformedPartner {
  readonly partnerId: PartnerId;
  readonly channel: PartnerChannel;
  /** Of a message about it. */
  readonly id: string;
  readonly notificationId: NotificationId | null;
  /** False: no message was accepted on this channel, and it was given up. */
  readonly isInformed: boolean;
}

/** The messages that a partner got in its present trouble. Each is sent by one instance, once for each channel. */
export interface PartnerMessageStore {
  /**
   * @returns the message's id, the same for each try; undefined while another instance sends it, and once it was sent.
   * A try that is not reported as sent is over after `leaseS`. A message about trouble forgets one whose end was claimed
   */
  claim(
    partnerId: PartnerId,
    kind: PartnerMessageKind,
    channel: PartnerChannel,
    notificationId: NotificationId | null,
    leaseS: number,
  ): Promise<string | undefined>;
  sent(partnerId: PartnerId, kind: PartnerMessageKind, channel: PartnerChannel): Promise<void>;
  /** Nobody claims it again before the trouble is over. */
  giveUp(partnerId: PartnerId, kind: PartnerMessageKind, channel: PartnerChannel): Promise<void>;
  /** The partner's oldest notification that failed, now. */
  found(partnerId: PartnerId, notificationId: NotificationId): Promise<void>;
  informed(): Promise<readonly InformedPartner[]>;
  /** The trouble is over. One that was forgotten before, and one that began since, are unchanged. */
  forget(told: Pick<InformedPartner, "partnerId" | "channel" | "id">): Promise<void>;
}
