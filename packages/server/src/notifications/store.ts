import type { NotifiedCommand } from "@paybell/contract";
import type { restoredReason } from "../backups/restores.ts";
import type { Attempt, FailureReason } from "../delivery/delivery.ts";
import type { ChainId, LeaseId, NotificationId, PartnerId, RedeliveryId, TransactionId } from "../ids.ts";
import type { NotificationState } from "../notification.ts";
import type { EventKind } from "../telemetry/events.ts";

/** A position in commit order: everything up to it was seen. */
export interface HistoryPoint {
  /** The 64-bit transaction id (`xid8`) that committed a notification. */
  readonly xid: bigint;
  /** The notification's id, which orders those of one transaction. */
  readonly id: string;
}

/** The history that a cursor refers to. A restored backup or a promoted replica continues on another timeline. */
export interface DatabaseHistory {
  readonly systemIdentifier: bigint;
  readonly timeline: number;
}

/**
 * `retention`: its day of history was dropped before it was ever tried, for instance because its partner was paused.
 * `restored`: it was pending in a database that was restored from a backup.
 */
export type ParkedReason = FailureReason | "retention" | typeof restoredReason;

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

/** `visible`: a page shows it now. `not_visible`: it is durable, and shown once earlier transactions have ended. */
export type Following = "visible" | "not_visible" | "nothing";

/** The data needed to seal a notification. */
export interface NotificationContent {
  readonly id: NotificationId;
  readonly transactionId: TransactionId | null;
  readonly originalId: TransactionId | null;
  /** Set if the original is known only by the switch's id, and `originalId` was looked up by it. */
  readonly originalExternalId?: string | null;
  readonly command: NotifiedCommand;
  readonly callBackUrl: string | null;
  readonly createdAtMs: number;
  readonly state: NotificationState;
  /** POSTs so far in the current schedule. */
  readonly attemptsMade: number;
  readonly toRegistered: boolean;
  /** The facts as JSON text. */
  readonly content: string;
  /** `ContentMac`; null: it has none. */
  readonly mac: Buffer | null;
}

/** A notification and its status, for the APIs. */
export interface NotificationStatus extends NotificationKey {
  readonly transactionId: TransactionId | null;
  readonly command: NotifiedCommand;
  readonly callBackUrl: string | null;
  readonly createdAtMs: number;
  readonly state: NotificationState;
  readonly attemptsMade: number;
  readonly lastReason: ParkedReason | null;
  /** Of the attempt that failed for `lastReason`; null: without an answer. */
  readonly lastHttpStatus: number | null;
  /** When it was accepted or parked. */
  readonly outcomeAtMs: number | null;
  /** The reason for which a pending one waits. */
  readonly waiting: WaitingFor | null;
  readonly schedule: RunningSchedule | null;
  readonly partnerName: string;
}

/** The fields of a notification by which people recognize it; never a whole card number. Null: unknown. */
export interface NotificationSubject {
  readonly merchantTransId: string | null;
  /** For a settlement its totalAmount. */
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

/**
 * Exact values that the content must have. `contains` matches part of merchantTransId, in either case, and `beginning`
 * its beginning.
 */
export interface SubjectMatch {
  readonly command?: NotifiedCommand | undefined;
  readonly tid?: string | undefined;
  readonly mid?: string | undefined;
  readonly refId?: string | undefined;
  readonly approveCode?: string | undefined;
  readonly billId?: string | undefined;
  readonly lastFour?: string | undefined;
  readonly contains?: string | undefined;
  readonly merchantTransId?: string | undefined;
  readonly beginning?: string | undefined;
  /** By isoResponseCode: 00, or another one. */
  readonly result?: "approved" | "declined" | undefined;
  /** Bounds of the amount, or a settlement's totalAmount: decimals, both inclusive. */
  readonly amountFrom?: string | undefined;
  readonly amountTo?: string | undefined;
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

/** The position of a pending notification in its retry schedule. */
export interface RunningSchedule {
  readonly startMs: number;
  /** Steps made once the next attempt was made; one that a person asked for is none. */
  readonly stepsMade: number;
}

/** One recorded POST. */
export interface RecordedAttempt extends Attempt {
  readonly attemptNo: number;
  readonly instanceId: LeaseId;
}

/** Results of a partner's newest deliveries that were sealed with one version of its encryption key. */
export interface KeyUse {
  readonly keyId: string;
  readonly accepted: number;
  readonly failed: number;
  readonly lastAcceptedAtMs: number | null;
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
  readonly reasons?: readonly string[] | undefined;
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
  readonly queue: string;
  readonly content: string;
  readonly mac: Buffer;
}

/** Counts of what was not delivered to one partner, and how far it has pulled. Counts are exact up to 10,000. */
export interface StoredBacklog {
  readonly pending: number;
  readonly oldestPendingMs: number | null;
  readonly parked: number;
  readonly pull: { readonly cursor: string; readonly atMs: number } | null;
}

/** A reason that holds back a notification that is due: its partner is paused, or an earlier one of its chain waits. */
export type Held = "paused" | "order";

/** Counts of the notifications of a redelivery. The rest is delivered. */
export interface RedeliveryCounts {
  readonly redelivered: number;
  readonly pending: number;
  /** A part of the pending ones: their attempt since has failed, and they are tried again by their schedule. */
  readonly failed: number;
  /** A part of the pending ones: nothing holds them back, and they are sent now. */
  readonly due: number;
  /** The next attempt of the others, unless it takes a person, or an earlier one of their chain. */
  readonly nextAttemptMs: number | null;
  readonly parked: number;
  /** A part of the pending ones. */
  readonly held: Readonly<Record<Held, number>>;
}

/** The rest of an accepted notification once its day of history was dropped. */
export interface KeptProof {
  readonly id: NotificationId;
  readonly partnerId: PartnerId;
  readonly transactionId: TransactionId | null;
  readonly command: NotifiedCommand;
  readonly createdAtMs: number;
  /** The start of the accepted attempt; the fields that follow describe it too. */
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly url: string;
  readonly address: string | null;
  readonly httpStatus: number | null;
  readonly keyId: string | null;
  /** All of them. */
  readonly attempts: number;
  /** In hexadecimal. */
  readonly contentSha256: string;
}

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
  backlog(partnerId: PartnerId): Promise<StoredBacklog>;
  /** The partner has passed this cursor of its own history. */
  notePull(partnerId: PartnerId, cursor: string): Promise<void>;
  partnerIds(): Promise<readonly PartnerId[]>;
  /** Searches all partners if none is given. */
  locate(id: NotificationId, partnerId?: PartnerId): Promise<NotificationKey | undefined>;
  /**
   * Searches by notification id, transaction id, reqId, externalId or merchantTransId; if none matches, by prefix. If
   * `rowsMax` match or more, the result is what they have in common: the keys would be any of them.
   */
  lookUp(
    q: string,
    partnerId: PartnerId | undefined,
    rowsMax: number,
  ): Promise<readonly NotificationKey[] | Pick<SubjectMatch, "merchantTransId" | "beginning">>;
  /** At most `rowsMax` keys in the requested order. Fewer means that there are no more. */
  keys(range: KeyRange, rowsMax: number): Promise<readonly NotificationKey[]>;
  /** The status of those `keys` that still exist, in their order. */
  statuses(keys: readonly NotificationKey[]): Promise<readonly NotificationStatus[]>;
  /** The subjects of the notifications; of several, without those that are too large to be read for a list. */
  subjects(keys: readonly NotificationKey[]): Promise<ReadonlyMap<NotificationId, NotificationSubject>>;
  /** The `keys` whose content matches, in their order. */
  matching(keys: readonly NotificationKey[], match: SubjectMatch): Promise<readonly NotificationKey[]>;
  /** Key use of the attempts at the partner's newest `rowsMax` notifications since then. */
  keyUse(partnerId: PartnerId, sinceMs: number, rowsMax: number): Promise<readonly KeyUse[]>;
  attempts(key: NotificationKey, rowsMax: number): Promise<readonly RecordedAttempt[]>;
  /** Events of a notification and its transaction, the oldest first; if there are more than `rowsMax`, the newest. */
  events(of: NotificationStatus, rowsMax: number): Promise<readonly RecordedEvent[]>;
  /**
   * Makes notifications of one partner due at once, in one transaction, and counts them for `redelivery`. A pending one
   * stays in its round. Returns those that are due.
   *
   * @param of.ofAccepted default true; false: those that were accepted since they were selected stay so
   */
  redeliver(
    partnerId: PartnerId,
    ids: readonly NotificationId[],
    to: "original" | "registered",
    of?: { readonly redelivery: RedeliveryId; readonly ofAccepted: boolean },
  ): Promise<ReadonlyMap<NotificationId, Held | null>>;
  /** Counts for all partners if none is given; undefined if there is no such redelivery. */
  redeliveryCounts(id: RedeliveryId, partnerId: PartnerId | undefined): Promise<RedeliveryCounts | undefined>;
  /** Finds what is kept of an accepted notification whose day was dropped. */
  keptProof(id: NotificationId): Promise<KeptProof | undefined>;
  /** Inserts a notification that is due at once. */
  insertTest(test: TestNotification): Promise<void>;
}
