import type { NotifiedCommand } from "@paybell/contract";
import type { FailureReason } from "../delivery/store.ts";
import type { EventKind } from "../events.ts";
import type { ChainId, LeaseId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { DatabaseHistory, HistoryPoint } from "./cursor.ts";

/** Where a notification stands. It is derived: a row among the pending, one among the parked, or neither. */
export type NotificationState = "pending" | "accepted" | "parked";

/** `retention`: its day of history was dropped before it was ever tried, because its partner was paused perhaps. */
export type ParkedReason = FailureReason | "retention";

/** Why a pending one is not sent now, other than that it is not due yet. */
export type WaitsFor = "partner_paused" | "partner_disabled" | "endpoint_gone" | "endpoint_open";

/** A notification's key: its id begins with its time, and so names its day of history. */
export interface NotificationKey {
  readonly partnerId: PartnerId;
  readonly id: NotificationId;
}

/** One notification of a page of history, without its content. */
export interface PageRow {
  readonly id: NotificationId;
  readonly xid: bigint;
  /** As stored, compressed perhaps: tells a small content from a large one before it is read. */
  readonly storedBytes: number;
}

/** Where somebody stands in a partner's notifications. */
export interface HistoryPosition {
  readonly partnerId: PartnerId;
  readonly after: HistoryPoint;
}

/** `settled`: a page shows it now. `unsettled`: it is durable, and shown once what began before it has ended. */
export type Following = "settled" | "unsettled" | "nothing";

/** What sealing it needs. */
export interface NotificationContent {
  readonly id: NotificationId;
  readonly transactionId: TransactionId | null;
  readonly originalId: TransactionId | null;
  readonly command: NotifiedCommand;
  readonly callBackUrl: string | null;
  readonly createdAtMs: number;
  readonly state: NotificationState;
  /** Real POSTs so far in the present schedule. */
  readonly attemptsMade: number;
  readonly toRegistered: boolean;
  /** The facts as JSON text. */
  readonly content: string;
}

/** A notification and where it stands, as people see it. */
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
  /** Of a settlement its totalAmount; null where it has none, or is too large to be read for a list. */
  readonly amount: string | null;
  readonly currency: string | null;
  readonly merchantTransId: string | null;
}

/** What people tell notifications apart by: of its content, never a whole card number. Null: unknown. */
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

/** What its content must have, exactly; `contains` is a part of merchantTransId, in either case. */
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

/** Why a pending notification was not delivered yet, and until when at least; null: until a person does something. */
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

/** What was recorded about a notification or its transaction. */
export interface RecordedEvent {
  readonly kind: EventKind;
  readonly atMs: number;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** What a search or a redelivery selects by. Bounds are ids: a time's lowest id stands for it. */
export interface KeyRange {
  /** Absent: every partner's. */
  readonly partnerId?: PartnerId | undefined;
  /** `history`: whatever its state. */
  readonly among: "history" | "pending" | "parked";
  /** Of parked ones alone. */
  readonly reason?: string | undefined;
  /** Inclusive. */
  readonly fromId: string;
  /** Exclusive. */
  readonly belowId: string;
  readonly order: "newest" | "oldest";
}

/** A notification that no transaction stands behind: a test. */
export interface TestNotification extends NotificationKey {
  readonly chainId: ChainId;
  readonly command: NotifiedCommand;
  readonly content: string;
}

export type Redelivered = "redelivered" | "still_pending" | "unknown";

/** The history of notifications, and the ways back into it. */
export interface NotificationStore {
  /**
   * The identity of the database that has the partner's, and up to where commit order is settled: below `horizon`
   * nothing can appear any more.
   */
  history(
    partnerId: PartnerId,
  ): Promise<{ cluster: DatabaseHistory; keptFromMs: number; horizon: bigint; nowMs: number }>;
  /** The next of a partner's in commit order after `after`, below `horizon`. */
  page(
    partnerId: PartnerId,
    after: HistoryPoint | undefined,
    horizon: bigint,
    rowsMax: number,
  ): Promise<readonly PageRow[]>;
  /** Of each place, in their order, what follows it in commit order. */
  following(places: readonly HistoryPosition[]): Promise<readonly Following[]>;
  /** What is still there of `ids`. */
  contents(
    partnerId: PartnerId,
    ids: readonly NotificationId[],
  ): Promise<ReadonlyMap<NotificationId, NotificationContent>>;
  partnerIds(): Promise<readonly PartnerId[]>;
  /** Looks in every partner when none is named. */
  locate(id: NotificationId, partnerId?: PartnerId): Promise<NotificationKey | undefined>;
  /** By notification id, transaction id, reqId, externalId or merchantTransId; where none is it, by its beginning. */
  lookUp(q: string, partnerId: PartnerId | undefined, rowsMax: number): Promise<readonly NotificationKey[]>;
  /** At most `rowsMax` keys in the order asked for; fewer: there are no more. */
  keys(range: KeyRange, rowsMax: number): Promise<readonly NotificationKey[]>;
  /** What is still there of `keys`, in their order. */
  statuses(keys: readonly NotificationKey[]): Promise<readonly NotificationStatus[]>;
  /** What they are about. */
  subjects(keys: readonly NotificationKey[]): Promise<ReadonlyMap<NotificationId, NotificationSubject>>;
  /** Those of `keys` that have it, in their order. */
  matching(keys: readonly NotificationKey[], match: SubjectMatch): Promise<readonly NotificationKey[]>;
  /** Undefined when it is not pending. */
  waiting(key: NotificationKey): Promise<WaitingFor | undefined>;
  attempts(key: NotificationKey, rowsMax: number): Promise<readonly RecordedAttempt[]>;
  /** Of a notification and its transaction, the oldest first; of very many, the newest `rowsMax`. */
  events(of: NotificationStatus, rowsMax: number): Promise<readonly RecordedEvent[]>;
  /** Makes accepted or parked notifications of one partner due again at once, in one transaction. */
  redeliver(
    partnerId: PartnerId,
    ids: readonly NotificationId[],
    to: "original" | "registered",
  ): Promise<ReadonlyMap<NotificationId, Redelivered>>;
  /** Makes a notification that is due at once. */
  insertTest(test: TestNotification): Promise<void>;
}
