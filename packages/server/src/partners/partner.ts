import type { KeyObject } from "node:crypto";
import type { NotifiedCommand, SealingKey, TransactionType } from "@paybell/contract";
import type { PartnerId } from "../ids.ts";
import type { ApiKeyHolder } from "./api-keys.ts";
import type { PartnerSettings } from "./settings.ts";

export type { ReportSettings } from "./report-settings.ts";
export type { PartnerSettings } from "./settings.ts";

/** Which transaction_type each command's IPN carries; VOID_PREAUTH is the Void of a PreAuth. */
export type TransactionTypes = Readonly<Record<NotifiedCommand | "VOID_PREAUTH", TransactionType>>;

export type PartnerState = "active" | "paused" | "disabled";

/** From when until when a partner was not active. Milliseconds since 1970. */
export type Pause = readonly [fromMs: number, toMs: number];

/** A partner as it stands, with the keys ready to use. A snapshot: never changed, replaced when something changes. */
export interface Partner {
  readonly id: PartnerId;
  readonly state: PartnerState;
  readonly settings: PartnerSettings;
  readonly keys: PartnerKeys;
  /** The earliest first, none of them overlapping: no schedule ran meanwhile. */
  readonly pauses: readonly Pause[];
}

/** Shown to a partner's server that asks for one (mTLS). */
export interface ClientCertificate {
  readonly id: string;
  /** PEM: the certificate, and what issued it after it. */
  readonly certificate: string;
  readonly key: KeyObject;
}

export interface PartnerKeys {
  /** The version that seals now. */
  readonly encryption: SealingKey;
  /** The version that signs now. */
  readonly signing: { readonly id: string; readonly key: KeyObject };
  /** Every secret that stands now, the newest first: each signs the headers while a rotation lasts. */
  readonly webhook: readonly { readonly id: string; readonly key: KeyObject }[];
  readonly client?: ClientCertificate;
}

/** What a caller may do with an API key. */
export type ApiKeyScope = "read" | "pull" | "commands" | "manage";

/** `callbackKey` is a client certificate with its key. */
export type KeyKind = "apiKey" | "encryptionKey" | "signingKey" | "webhookSecret" | "callbackKey";

/** Those that every partner has, and that are rotated. */
export type RotatedKind = Exclude<KeyKind, "callbackKey">;

/** Reads partners as they stand at most five seconds ago. */
export interface PartnerDirectory {
  /** Undefined when there is none. Rejects with `unavailable` when no fresh enough state can be had. */
  find(id: PartnerId): Promise<Partner | undefined>;
  /** The same without waiting: undefined when it is not at hand, or too old to be trusted. */
  peek(id: PartnerId): Partner | undefined;
  /** Whose API key this is, and what it allows; undefined for an unknown, expired or revoked key. */
  findByApiKey(apiKey: string): Promise<ApiKeyHolder | undefined>;
}
