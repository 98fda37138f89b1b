import type { NotifiedCommand } from "@paybell/contract";
import type { ChainId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { Instance } from "../instance.ts";
import type { EndpointSighting } from "./endpoints-store.ts";

/** What delivery needs kept. Every method is durable when it resolves, and safe to repeat when it rejected. */
export interface DeliveryStore {
  /** Takes due notifications for `instance`: every partner with due work gets its share, the longest due first. */
  claim(instance: Instance, limits: ClaimLimits): Promise<readonly Claimed[]>;
  /** Records one attempt and what follows from it. Concurrent calls share one commit. */
  record(outcome: Outcome): Promise<Recorded>;
  /** Gives back what was taken and never sent: due again after `delayMs`, no attempt counted. */
  giveBack(instance: Instance, taken: readonly Taken[], delayMs: number): Promise<void>;
  /** What stands under the instance's lease, `rowsMax` of it at most. */
  held(instance: Instance, rowsMax: number): Promise<readonly Taken[]>;
  /** Makes due again what belongs to instances whose lease has run out. Resolves to how many rows. */
  releaseDead(rowsMax: number): Promise<number>;
  /** Tells every instance that something is due. */
  announceDue(): Promise<void>;
}

export interface Taken extends Pick<Claimed, "partnerId" | "id" | "claimNo"> {
  /** It waits in another queue from now on: its URL is gone. */
  readonly queue?: string;
}

export interface ClaimLimits {
  readonly rowsMax: number;
  readonly rowsPerPartnerMax: number;
  /** Partners that may have more or fewer: each queue of theirs gives so many at most. */
  readonly rowsMaxOf?: ReadonlyMap<PartnerId, number>;
  /** All of them together. */
  readonly bytesMax: number;
  /** One that is larger than that is taken alone. */
  readonly oversizeAllowed?: boolean;
  /** Partners that have no free place here, or are paused. */
  readonly without: readonly PartnerId[];
  /** For how long the one delivery that tries an open endpoint again keeps others from trying it. */
  readonly probeLeaseMs: number;
}

/** One notification in this instance's hands, with all that an attempt needs. */
export interface Claimed {
  readonly partnerId: PartnerId;
  readonly id: NotificationId;
  readonly transactionId: TransactionId | null;
  readonly originalId: TransactionId | null;
  readonly chainId: ChainId;
  readonly command: NotifiedCommand;
  /** The facts as JSON text. */
  readonly content: string;
  /** The callback URL of its own; null: the registered one. */
  readonly callBackUrl: string | null;
  /** A redelivery to the URL registered now, whatever the original was. */
  readonly toRegistered: boolean;
  /** The fence: rises with every claim. */
  readonly claimNo: number;
  /** Real POSTs before this one. */
  readonly attemptsMade: number;
  /** Since when the schedule runs: creation, or the redelivery that was asked for. */
  readonly scheduleStartMs: number;
  readonly outOfOrder: boolean;
  /** Its endpoint is open, and this one tries it again. */
  readonly isProbe: boolean;
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

export interface Outcome {
  readonly partnerId: PartnerId;
  readonly id: NotificationId;
  readonly claimNo: number;
  readonly instance: Instance;
  /** Real POSTs, this one included. */
  readonly attemptsMade: number;
  readonly attempt: Attempt;
  readonly next:
    | { readonly kind: "accepted" }
    | { readonly kind: "retry"; readonly delayMs: number }
    | { readonly kind: "parked" };
  /** What it tells of its endpoints: durable with the outcome. */
  readonly sightings?: readonly EndpointSighting[];
}

/** `overtaken`: another claim owns the row by now, so a failure was recorded and changed nothing else. */
export type Recorded = "applied" | "overtaken";
