import type { KeyId, PartnerId } from "../ids.ts";
import type { MasterKeyCheckStore } from "./master-key.ts";
import type { KeyKind, PartnerSettings, PartnerState } from "./partner.ts";
import type { Terminal } from "./terminal.ts";

/** What partners need kept. Every change is durable when it resolves. */
export interface PartnerStore extends PartnerStates, SealCounts, MasterKeyCheckStore {
  insert(partner: NewPartner): Promise<StoredPartner>;
  /** Changes one partner under its row's lock: `next` sees it as it stands. Undefined when there is none. */
  change(
    id: PartnerId,
    next: (standing: StoredPartner) => { readonly state?: PartnerState; readonly settings?: PartnerSettings },
  ): Promise<StoredPartner | undefined>;
  find(id: PartnerId): Promise<StoredPartner | undefined>;
  /** In the order of registration, after `after`. */
  list(after: PartnerId | undefined, limit: number): Promise<readonly StoredPartner[]>;
  /**
   * Adds a key version under the partner's row lock and ends every other version of its kind when the overlap ends, or
   * earlier where that was agreed already. `activeAtOnce`: it is used from now on, beside the old; otherwise it takes
   * over when the overlap ends. Undefined when there is no such partner.
   */
  rotate(id: PartnerId, key: NewKey, overlapS: number, activeAtOnce: boolean): Promise<Rotation | undefined>;
}

/** What the directory reads, again and again. */
export interface PartnerStates {
  /** A text for each partner that differs whenever anything that `load` gives differs, the passing of time included. */
  fingerprints(ids: readonly PartnerId[]): Promise<ReadonlyMap<PartnerId, string>>;
  load(ids: readonly PartnerId[]): Promise<readonly LoadedPartner[]>;
  /** The partners to whom these hashes of API keys ever belonged, by the hash's hexadecimal form. */
  partnersByApiKey(hashes: readonly Buffer[]): Promise<ReadonlyMap<string, PartnerId>>;
}

export interface SealCounts {
  /** Adds to what a key version counts as sealed; resolves to the sum, undefined when there is no such version. */
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
  /** Sealed under the master key; of an API key its SHA-256. */
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
}

export interface Rotation {
  readonly activeFrom: Date;
  readonly expiresOld: Date;
}

/** A partner with the key versions that stand now, by the database's clock, the one active last first. */
export interface LoadedPartner {
  readonly id: PartnerId;
  readonly fingerprint: string;
  readonly state: PartnerState;
  readonly settings: PartnerSettings;
  readonly keys: readonly NewKey[];
}

export interface TerminalStore {
  /**
   * Registers a terminal, or changes what is registered for it; its numbers and its batch stay.
   *
   * @param preAuthDays for how long a PreAuth counts as open
   */
  put(partnerId: PartnerId, terminal: Terminal, preAuthDays: number): Promise<PutTerminal>;
  find(partnerId: PartnerId, tid: string): Promise<Terminal | undefined>;
  list(partnerId: PartnerId, after: string | undefined, limit: number): Promise<readonly Terminal[]>;
}

export type PutTerminal =
  | { readonly outcome: "put"; readonly terminal: Terminal }
  /** Another partner has it. */
  | { readonly outcome: "taken" }
  /** Its mid would change, while what belongs to the old one is open. */
  | { readonly outcome: "busy" };
