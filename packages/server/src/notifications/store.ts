import type { NotifiedCommand } from "@paybell/contract";
import type { FailureReason } from "../delivery/store.ts";
import type { EventKind } from "../events.ts";
import type { ChainId, LeaseId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { DatabaseHistory, HistoryPoint } from "./cursor.ts";

/** The state of a notification. It is derived: a row in pending, one in parked, or neither. */
export type NotificationState = "pending" | "accepted" | "parked";

/**
 * `retention`: its day of history was dropped before it was ever tried, for instance because its partner was paused.
 */
export type ParkedReason = FailureReason | "retention";

/** Why a pending notification is not sent now, other than not being due yet. */
export type WaitsFor = "partner_paused" | "partner_disabled" | "endpoint_gone" | "endpoint_open";

/** A notification's key. Its id begins with its time, and so identifies its day of history. */
export interface NotificationKey {
  readonly partnerId: PartnerId;
  readonly id: NotificationId;
}

/** One notification of a page of history, without its content. */
export interface PageRow {
  readonly id: NotificationId;
  readonly xid: bigint;
  /** The stored size, perhaps compressed: distinguishes small contents from large ones before they are read. */
  readonly storedBytes: number;
}

/** A position in a partner's notifications. */
export interface HistoryPosition {
  readonly partnerId: PartnerId;
  readonly after: HistoryPoint;
}

/** `settled`: a page shows it now. `unsettled`: it is durable, and shown once earlier transactions have ended. */
export type Following = "settled" | "unsettled" | "nothing";

/** The data needed to seal a notification. */
export interface NotificationContent {
  readonly id: NotificationId;
  readonly transactionId: TransactionId | null;
  readonly originalId: TransactionId | null;
  readonly command: NotifiedCommand;
  readonly callBackUrl: string | null;
  readonly createdAtMs: number;
  readonly state: NotificationState;
  /** POSTs so far in the current schedule. */
  readonly attemptsMade: number;
  readonly toRegistered: boolean;
  /** The facts as JSON text. */
  readonly content: string;
}

/** A notification and its status, for the APIs. */
export interface NotificationStatus extends NotificationKey {
  readonly transactionId: TransactionId | null;
  readonly command: NotifiedCommand;
  readonly callBackUrl: string | null;
  readonly createdAtMs: number;
  readonly state: NotificationState;
  readonly attemptsMade: number;
  readonly nextAttemptAtMs: number | null;
  readonly lastReason: ParkedReason | null;
  /** When it was accepted or parked. */
  readonly outcomeAtMs: number | null;
  readonly waitsFor: WaitsFor | null;
  readonly partnerName: string;
  /** For a settlement its totalAmount; null if there is none, or if it is too large to be read for a list. */
  readonly amount: string | null;
  readonly currency: string | null;
  readonly merchantTransId: string | null;
}

/** The fields of a notification by which people recognize it; never a whole card number. Null: unknown. */
export interface NotificationSubject {
  readonly merchantTransId: string | null;
  readonly amount: string | null;
  readonly currency: string | null;
  readonly tid: string | null;
  readonly mid: string | null;
  readonly merchantName: string | null;
  readonly refId: string | null;
  readonly approveCode: string | null;
  readonly isoResponseCode: string | null;
  readonly reqId: string | null;
  readonly lastFour: string | null;
}

/** Exact values that the content must have. `contains` matches part of merchantTransId, in either case. */
export interface SubjectMatch {
  readonly command?: NotifiedCommand | undefined;
  readonly tid?: string | undefined;
  readonly mid?: string | undefined;
  readonly refId?: string | undefined;
  readonly approveCode?: string | undefined;
  readonly billId?: string | undefined;
  readonly lastFour?: string | undefined;
  readonly contains?: string | undefined;
}

/** Why a pending notification was not delivered yet, and the earliest time it can be; null: until a person acts. */
export type WaitingFor =
  | { readonly because: "paused" | "disabled"; readonly sinceMs: number; readonly untilMs: null }
  | {
      readonly because: "circuit" | "gone";
      readonly endpointId: string;
      readonly target: string;
      readonly reason: string | null;
      readonly untilMs: number | null;
    }
  | { readonly because: "order"; readonly after: NotificationId; readonly untilMs: number }
  | { readonly because: "retry" | "turn"; readonly untilMs: number };

/** One recorded POST. */
export interface RecordedAttempt {
  readonly attemptNo: number;
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly url: string;
  readonly address: string | null;
  readonly httpStatus: number | null;
  readonly reason: FailureReason | null;
  readonly detail: string | null;
  readonly answer: Buffer | null;
  readonly keyId: string | null;
  readonly instanceId: LeaseId;
}

/** An event about a notification or its transaction. */
export interface RecordedEvent {
  readonly kind: EventKind;
  readonly atMs: number;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** The selection of a search or a redelivery. Bounds are ids: the lowest id of a time represents it. */
export interface KeyRange {
  /** Absent: all partners. */
  readonly partnerId?: PartnerId | undefined;
  /** `history`: whatever its state. */
  readonly among: "history" | "pending" | "parked";
  /** Only for parked ones. */
  readonly reason?: string | undefined;
  /** Inclusive. */
  readonly fromId: string;
  /** Exclusive. */
  readonly belowId: string;
  readonly order: "newest" | "oldest";
}

/** A notification without a transaction: a test. */
export interface TestNotification extends NotificationKey {
  readonly chainId: ChainId;
  readonly command: NotifiedCommand;
  readonly content: string;
}

export type Redelivered = "redelivered" | "still_pending" | "unknown";

/** The history of notifications, and redelivery from it. */
export interface NotificationStore {
  /** The identity of the partner's database, and the horizon of commit order: below it nothing can appear any more. */
  history(
    partnerId: PartnerId,
  ): Promise<{ cluster: DatabaseHistory; keptFromMs: number; horizon: bigint; nowMs: number }>;
  /** The partner's notifications after `after` in commit order, below `horizon`. */
  page(
    partnerId: PartnerId,
    after: HistoryPoint | undefined,
    horizon: bigint,
    rowsMax: number,
  ): Promise<readonly PageRow[]>;
  /** For each position, in order, whether something follows it in commit order. */
  following(places: readonly HistoryPosition[]): Promise<readonly Following[]>;
  /** The contents of those `ids` that still exist. */
  contents(
    partnerId: PartnerId,
    ids: readonly NotificationId[],
  ): Promise<ReadonlyMap<NotificationId, NotificationContent>>;
  partnerIds(): Promise<readonly PartnerId[]>;
  /** Searches all partners if none is given. */
  locate(id: NotificationId, partnerId?: PartnerId): Promise<NotificationKey | undefined>;
  /** Searches by notification id, transaction id, reqId, externalId or merchantTransId; if none matches, by prefix. */
  lookUp(q: string, partnerId: PartnerId | undefined, rowsMax: number): Promise<readonly NotificationKey[]>;
  /** At most `rowsMax` keys in the requested order. Fewer means that there are no more. */
  keys(range: KeyRange, rowsMax: number): Promise<readonly NotificationKey[]>;
  /** The status of those `keys` that still exist, in their order. */
  statuses(keys: readonly NotificationKey[]): Promise<readonly NotificationStatus[]>;
  /** The subjects of the notifications. */
  subjects(keys: readonly NotificationKey[]): Promise<ReadonlyMap<NotificationId, NotificationSubject>>;
  /** Those `keys` whose content matches, in their order. */
  matching(keys: readonly NotificationKey[], match: SubjectMatch): Promise<readonly NotificationKey[]>;
  /** Undefined when it is not pending. */
  waiting(key: NotificationKey): Promise<WaitingFor | undefined>;
  attempts(key: NotificationKey, rowsMax: number): Promise<readonly RecordedAttempt[]>;
  /** Events of a notification and its transaction, the oldest first; if there are more than `rowsMax`, the newest. */
  events(of: NotificationStatus, rowsMax: number): Promise<readonly RecordedEvent[]>;
  /** Makes accepted or parked notifications of one partner due again at once, in one transaction. */
  redeliver(
    partnerId: PartnerId,
    ids: readonly NotificationId[],
    to: "original" | "registered",
  ): Promise<ReadonlyMap<NotificationId, Redelivered>>;
  /** Inserts a notification that is due at once. */
  insertTest(test: TestNotification): Promise<void>;
}
