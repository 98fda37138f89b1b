import type { NotifiedCommand } from "@paybell/contract";
import type { ChainId, EventId, LeaseId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { CircuitChange } from "./circuit-store.ts";

/** One notification on its way, with all that an attempt needs. */
export interface Delivery {
  readonly partnerId: PartnerId;
  readonly id: NotificationId;
  /** The origin of the callback URL of its own; empty: that of the registered one. */
  readonly queue: string;
  /** Raised by each redelivery. */
  readonly round: number;
  /** Real POSTs of this round before the next one. */
  readonly attemptsMade: number;
  /** Real POSTs of the rounds before this one, as far as history has them. */
  readonly attemptsBefore: number;
  /** Since when the schedule runs: creation, or the redelivery that was asked for. Milliseconds since 1970. */
  readonly scheduleStartMs: number;
  readonly chainId: ChainId;
  /** It leaves after the earlier ones of its chain. */
  readonly follows: boolean;
  /** A settlement leaves after the notifications of this batch. */
  readonly settlesBatch: string | null;
  /** A redelivery to the URL registered now, whatever the original was. */
  readonly toRegistered: boolean;
  readonly transactionId: TransactionId | null;
  readonly originalId: TransactionId | null;
  readonly command: NotifiedCommand;
  /** The callback URL of its own; null: the registered one. */
  readonly callBackUrl: string | null;
  /** The facts as JSON text. */
  readonly content: string;
  /** Of the content, in UTF-8. */
  readonly bytes: number;
}

/** A queue is what one partner has pending for one callback origin. */
export interface QueueKey {
  readonly partnerId: PartnerId;
  readonly queue: string;
}

/** Something of a partner is due. */
export interface Hint extends Pick<QueueKey, "partnerId"> {
  /** Undefined: of any of its queues. */
  readonly queue?: string;
  /** Since when, in milliseconds since 1970 by the clock of the database; undefined: it is not known. */
  readonly sinceMs?: number;
}

/** A place in a queue, in the order in which deliveries are due. */
export interface QueuePosition {
  /** Microseconds since 1970, by the database's clock. */
  readonly dueAtUs: number;
  readonly id: NotificationId;
}

/** Reads what follows `after` in a queue; from its head when that is undefined. */
export interface QueueRead extends QueueKey {
  readonly after: QueuePosition | undefined;
  readonly rowsMax: number;
  /** Of content; the first row comes whatever its size. */
  readonly bytesMax: number;
}

export interface QueuePage {
  /** What is due, in order; without its delivery where history does not hold it any more. */
  readonly due: readonly (QueuePosition & { readonly delivery: Delivery | undefined })[];
  /** There may be more that is due: a bound was reached. */
  readonly hasMore: boolean;
  /** When the next one is due, in milliseconds from now; undefined when there is none, or when there is more. */
  readonly nextInMs: number | undefined;
}

/** The first delivery of a queue. */
export interface QueueHead extends QueueKey, Pick<Delivery, "id" | "round" | "attemptsMade"> {
  readonly dueInMs: number;
}

/** Whether a delivery that follows others may leave. */
export interface Precedence {
  /** An earlier one of its chain or batch that is pending; undefined: none is. */
  readonly after: NotificationId | undefined;
  /** How long ago it began, by the database's clock. */
  readonly ageMs: number;
}

/** A delivery as outcomes name it: they change only the very round and attempt that they belong to. */
export type DeliveryKey = Pick<Delivery, "partnerId" | "id" | "round" | "attemptsMade">;

/** Nothing was sent: due again after `delayMs`, and no attempt is counted. */
export interface PutOff extends DeliveryKey {
  readonly delayMs: number;
}

/** Why an attempt did not succeed. Stable words: metrics, the APIs and the console show them. */
export type FailureReason =
  | "no_callback_url"
  | "address_refused"
  | "dns"
  | "connect"
  | "connect_timeout"
  | "tls"
  | "timeout"
  | "reset"
  | "bad_response"
  | "redirect"
  | "status"
  | "too_large"
  | "gone"
  | "rate_limited"
  | "key_exhausted"
  | "internal";

/** One POST, as it is recorded. */
export interface Attempt {
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly url: string;
  /** The address that was connected to; null when it came to no connection. */
  readonly address: string | null;
  readonly httpStatus: number | null;
  readonly reason: FailureReason | null;
  /** In words, for the operator. */
  readonly detail: string | null;
  /** The first 4 KiB of an answer that was not 2xx. */
  readonly answer: Buffer | null;
  /** The version of the key that sealed it. */
  readonly keyId: string | null;
}

/** What one attempt came to. It is recorded until its fate is known, also after the lease is lost. */
export interface DeliveryOutcome extends DeliveryKey {
  readonly leaseId: LeaseId;
  readonly attempt: Attempt;
  readonly next:
    | { readonly kind: "accepted" }
    | { readonly kind: "retry"; readonly delayMs: number }
    /** `eventId` is made once, so that the event is written once however often the record is repeated. */
    | { readonly kind: "parked"; readonly eventId: EventId };
  /** What it changes of its endpoint's circuit breaker. */
  readonly circuits: readonly CircuitChange[];
}

/** `missed`: the row belongs to a later round or attempt, or is gone; the attempt was recorded and changed nothing. */
export type Recorded = "applied" | "missed";

/** What waits for an endpoint that is tripped or gone, and is parked once its schedule is over. */
export interface OverdueLook extends QueueKey {
  readonly after: QueuePosition | undefined;
  /** How long the partner's schedule lasts. */
  readonly scheduleMs: number;
  /** Why: the endpoint's last failure. */
  readonly reason: FailureReason;
}

export interface OverdueLooked {
  readonly parked: number;
  /** Where the next look goes on; undefined: from the head. */
  readonly after: QueuePosition | undefined;
}

/** Pending deliveries. Every write is safe to repeat; those of several deliveries share commits. */
export interface DeliveryStore {
  /** Pages in the order of the reads. Neither locks nor changes anything. */
  read(reads: readonly QueueRead[]): Promise<readonly QueuePage[]>;
  /** The head of each queue of these shards: one step along an index each. */
  heads(shards: readonly number[]): Promise<readonly QueueHead[]>;
  /** For each delivery, in order, what it must wait for; undefined: it is pending no more. */
  preceding(deliveries: readonly Delivery[]): Promise<readonly (Precedence | undefined)[]>;
  /** Records one attempt and what follows from it. Never gives up while the database is away. */
  record(outcome: DeliveryOutcome): Promise<Recorded>;
  putOff(deliveries: readonly PutOff[]): Promise<void>;
  /** Moves deliveries into the queue of their URL, which is gone. */
  setAside(deliveries: readonly (DeliveryKey & { readonly queue: string })[]): Promise<void>;
  /** Parks what is overdue among the next rows of one queue. */
  parkOverdue(look: OverdueLook): Promise<OverdueLooked>;
}
