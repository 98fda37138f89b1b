import type { NotifiedCommand } from "@paybell/contract";
import type { Delivery } from "../../packages/server/src/delivery/delivery.ts";
import type { ChainId, LeaseId, NotificationId, PartnerId } from "../../packages/server/src/ids.ts";

/** The first byte of one POST. */
export interface NotificationStart {
  readonly round: number;
  readonly attemptsMade: number;
  readonly leaseId: LeaseId;
  readonly epoch: number | undefined;
  /** By when it has ended, whatever became of it. */
  readonly deadlineMs: number;
  isEnded: boolean;
  /** Its outcome could not be stored: it is made again. */
  mayRepeat: boolean;
}

/** One notification: its row, and what really became of it. */
export interface SimulatedNotification {
  readonly partnerId: PartnerId;
  readonly id: NotificationId;
  readonly shard: number;
  readonly command: NotifiedCommand;
  readonly chainId: ChainId;
  readonly follows: boolean;
  readonly settlesBatch: string | null;
  readonly bytes: number;
  readonly callBackUrl: string | null;
  /** It leaves after these. */
  predecessors: readonly SimulatedNotification[];

  /** The row, as it is committed. `new`: its transaction has not ended yet. */
  state: "new" | "pending" | "parked" | "accepted";
  queue: string;
  dueAtUs: number;
  round: number;
  attemptsMade: number;
  scheduleStartMs: number;
  /** Attempts of these that a person asked for; and whether the next one is. */
  asked: number;
  isAsked: boolean;
  toRegistered: boolean;
  /** Since when the row is as it is, in the world's time. */
  changedMs: number;

  /** Rounds in which an endpoint answered 2xx. */
  readonly acceptedRounds: Set<number>;
  wasParked: boolean;
  /** Attempts of its round that the schedule does not count, as the checks know them. */
  sentNow: number;
  /** It waited for ten minutes, and may leave before its predecessors. */
  mayOvertake: boolean;
  starts: NotificationStart[];
  /** The worker that was notified of it, under the epoch of its shard. */
  told: { readonly worker: string; readonly epoch: number; readonly atMs: number } | undefined;
}

/** The row as a reader gets it. */
export function deliveryOf(one: SimulatedNotification): Delivery {
  return {
    partnerId: one.partnerId,
    id: one.id,
    queue: one.queue,
    round: one.round,
    attemptsMade: one.attemptsMade,
    asked: one.asked + Number(one.isAsked),
    attemptsBefore: 0,
    scheduleStartMs: one.scheduleStartMs,
    chainId: one.chainId,
    follows: one.follows,
    settlesBatch: one.settlesBatch,
    toRegistered: one.toRegistered,
    transactionId: null,
    originalId: null,
    command: one.command,
    callBackUrl: one.callBackUrl,
    content: "{}",
    bytes: one.bytes,
  };
}
