import type { KeyObject } from "node:crypto";
import type { SealingKey } from "@paybell/contract";
import type { KeyId, PartnerId } from "../ids.ts";
import type { PartnerSettings } from "./settings/settings.ts";

export type { PartnerSettings, ReportSettings } from "./settings/settings.ts";

export type PartnerState = "active" | "paused" | "disabled";

/** A period in which a partner was not active. Milliseconds since 1970. */
export type Pause = readonly [fromMs: number, toMs: number];

/** A snapshot of a partner, with its keys ready to use. It is never changed, but replaced after a change. */
export interface Partner {
  readonly id: PartnerId;
  readonly state: PartnerState;
  readonly settings: PartnerSettings;
  readonly keys: PartnerKeys;
  /** The earliest first, without overlap: no schedule ran meanwhile. */
  readonly pauses: readonly Pause[];
}

/** Presented to a partner's server that requests a certificate (mTLS). */
export interface ClientCertificate {
  readonly id: string;
  /** PEM: the certificate, followed by its issuers. */
  readonly certificate: string;
  readonly key: KeyObject;
}

export interface PartnerKeys {
  /** The version that encrypts now. */
  readonly encryption: SealingKey;
  /** The version that signs now. */
  readonly signing: { readonly id: string; readonly key: KeyObject };
  /** Every valid secret, the newest first: during a rotation each one signs the headers. */
  readonly webhook: readonly { readonly id: string; readonly key: KeyObject }[];
  readonly client?: ClientCertificate;
}

export type ApiKeyScope = "read" | "pull" | "commands" | "manage";

/** `callbackKey` is a client certificate with its key. */
export type KeyKind = "apiKey" | "encryptionKey" | "signingKey" | "webhookSecret" | "callbackKey";

/** The kinds that every partner has, and that are rotated. */
export type RotatedKind = Exclude<KeyKind, "callbackKey">;

/** The partner of an API key, and its scopes. */
export interface ApiKeyHolder {
  readonly partner: Partner;
  readonly keyId: KeyId;
  /** Null: everything. */
  readonly scopes: readonly ApiKeyScope[] | null;
}

/** Finds partners, at most five seconds old. */
export interface PartnerDirectory {
  /** Undefined if there is none. Rejects with `unavailable` if no fresh enough state is available. */
  find(id: PartnerId): Promise<Partner | undefined>;
  /** The same without waiting: undefined if it is not cached, or too old. */
  cached(id: PartnerId): Partner | undefined;
  /** The partner of an API key, and its scopes; undefined for an unknown, expired or revoked key. */
  findByApiKey(apiKey: string): Promise<ApiKeyHolder | undefined>;
}
