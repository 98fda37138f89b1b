import type { NotifiedCommand } from "@paybell/contract";
import type { EventKind } from "../events.ts";
import type { ChainId, LeaseId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { Cluster, Position } from "./cursor.ts";
import type { FailureReason } from "./store.ts";

/** Where a notification stands. It is derived: a row among the pending, one among the parked, or neither. */
export type NotificationState = "pending" | "accepted" | "parked";

/** `retention`: its day of history was dropped before it was ever tried, because its partner was paused perhaps. */
export type ParkedReason = FailureReason | "retention";

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
export interface Place {
  readonly partnerId: PartnerId;
  readonly after: Position;
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
export interface NotificationStanding extends NotificationKey {
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
}

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
  history(partnerId: PartnerId): Promise<{ cluster: Cluster; keptFromMs: number; horizon: bigint; nowMs: number }>;
  /** The next of a partner's in commit order after `after`, below `horizon`. */
  page(
    partnerId: PartnerId,
    after: Position | undefined,
    horizon: bigint,
    rowsMax: number,
  ): Promise<readonly PageRow[]>;
  /** Of each place, in their order, what follows it in commit order. */
  following(places: readonly Place[]): Promise<readonly Following[]>;
  /** What is still there of `ids`. */
  contents(
    partnerId: PartnerId,
    ids: readonly NotificationId[],
  ): Promise<ReadonlyMap<NotificationId, NotificationContent>>;
  partnerIds(): Promise<readonly PartnerId[]>;
  /** Looks in every partner when none is named. */
  locate(id: NotificationId, partnerId?: PartnerId): Promise<NotificationKey | undefined>;
  /** By notification id, transaction id, reqId, externalId or merchantTransId, exactly; at most `rowsMax`. */
  lookUp(q: string, partnerId: PartnerId | undefined, rowsMax: number): Promise<readonly NotificationKey[]>;
  /** At most `rowsMax` keys in the order asked for; fewer: there are no more. */
  keys(range: KeyRange, rowsMax: number): Promise<readonly NotificationKey[]>;
  /** What is still there of `keys`, in their order. */
  standings(keys: readonly NotificationKey[]): Promise<readonly NotificationStanding[]>;
  attempts(key: NotificationKey, rowsMax: number): Promise<readonly RecordedAttempt[]>;
  /** Of a notification and its transaction, the oldest first; of very many, the newest `rowsMax`. */
  events(of: NotificationStanding, rowsMax: number): Promise<readonly RecordedEvent[]>;
  /** Makes accepted or parked notifications of one partner due again at once, in one transaction. */
  redeliver(
    partnerId: PartnerId,
    ids: readonly NotificationId[],
    to: "original" | "registered",
  ): Promise<ReadonlyMap<NotificationId, Redelivered>>;
  /** Makes a notification that is due at once. */
  insertTest(test: TestNotification): Promise<void>;
}
