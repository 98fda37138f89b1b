import type { KeyObject } from "node:crypto";
import type { NotifiedCommand, Sealing, SealingKey, Signing, TransactionType, WireNames } from "@paybell/contract";
import type { PartnerId } from "../ids.ts";
import type { ApiKeyHolder } from "./api-keys.ts";

/** What a partner agreed with the operator. Every part but the addresses has a default; see `defaultSettings`. */
export interface PartnerSettings {
  readonly name: string;
  /** Priority 2 of the specification, section 4.1: used when a command brings no callBackUrl of its own. */
  readonly callBackUrl: string | null;
  /** CIDRs that a callback's address must be in. */
  readonly callbackAddresses: readonly string[];
  /** CIDRs that the partner calls us from. */
  readonly callingAddresses: readonly string[];
  /** PEM certificates of the authorities that alone may vouch for a callback's server; null: the well-known ones. */
  readonly callbackCa: string | null;
  /** `sha256/` and base64: the public key of a callback's server must be one of these. Empty: any. */
  readonly callbackPins: readonly string[];
  /** Ports that a callback may have; null: any. */
  readonly callbackPorts: readonly number[] | null;
  readonly cipher: Sealing["cipher"];
  readonly encoding: Sealing["encoding"];
  readonly signing: Signing;
  readonly wireNames: WireNames;
  readonly transactionTypes: TransactionTypes;
  /** `contact` sends C as CL and CTL as CLS. */
  readonly swipeTypes: "code" | "contact";
  /** Of a settlement's totalAmount: Sales plus Voids, or Sales less Voids. */
  readonly settlementTotal: "sum" | "net";
  readonly transactionTime: "table" | "iso8601";
  /** IANA name, such as Asia/Ho_Chi_Minh. */
  readonly timeZone: string;
  readonly ordering: "chain" | "none";
  /** Seconds to wait after each failed attempt; their sum is how long a notification is tried before it is parked. */
  readonly retry: readonly number[];
  readonly maxInFlight: number;
  /** POSTs a second, all instances together; null: as many as the slots allow. */
  readonly maxPerSecond: number | null;
  /** `open`: a terminal is known from its first command on. */
  readonly terminals: "open" | "registered";
  /** `silent`: a REFUND is run, and no IPN tells of it; the specification has none. */
  readonly refunds: "off" | "silent" | "notified";
  readonly reports: ReportSettings;
}

/** How the operator's switch writes what it reports for a partner. */
export interface ReportSettings {
  /** What makes two reports the same one; `externalId+command` where a Sale and its Void have one number. */
  readonly identity: "externalId" | "externalId+command";
  /** `minor`: digits in the currency's smallest unit. */
  readonly amounts: "major" | "minor";
  /** `any`: a card that was only verified is reported as a success of the amount zero. */
  readonly zeroAmounts: "declined" | "any";
  /** `1993`: three-digit action codes of ISO 8583:1993. */
  readonly responseCodes: "1987" | "1993";
  /** The cardScheme to send for a scheme that the specification's table has not. */
  readonly schemes: Readonly<Record<string, string>>;
}

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
