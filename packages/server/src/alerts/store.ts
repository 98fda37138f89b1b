import type { EventId } from "../ids.ts";
import type { EventKind, NewEvent } from "../telemetry/events.ts";

/** An event to be sent to the alert channels. */
export interface Alert extends NewEvent {
  readonly id: EventId;
  readonly atMs: number;
  /** The number of tries, this one included. */
  readonly tries: number;
  /** The same for all alerts that are sent together. */
  readonly groupId: string;
  /** The names of the channels that have accepted it. */
  readonly acceptedBy: readonly string[];
}

export interface EventStore {
  /** Records events. With `alert`, those of the kinds above become due. */
  record(events: readonly NewEvent[], alert: boolean): Promise<void>;
  /** Whether the service itself, any instance of it, recorded such an event since then. */
  wasRecordedSince(kind: EventKind, sinceMs: number): Promise<boolean>;
  /**
   * Claims due alerts of one kind for `leaseS` seconds, to be sent together. No other instance sends them meanwhile;
   * any may afterwards.
   */
  claimDue(rowsMax: number, leaseS: number): Promise<readonly Alert[]>;
  /**
   * What was claimed together was sent, or given up: another instance may have others of its group.
   *
   * @param quietS how long others of its kind wait
   */
  settle(alerts: readonly Alert[], quietS: number): Promise<void>;
  /** It becomes due again. @param quietS how long others of its kind wait: some channel has accepted it */
  retry(alerts: readonly Alert[], delayS: number, quietS: number): Promise<void>;
}
