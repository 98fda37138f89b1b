import type { EndpointId, EventId, PartnerId } from "../ids.ts";
import type { Circuit, CircuitState } from "./circuit.ts";
import type { FailureReason, QueueKey } from "./store.ts";

/** `origin`: everything that one origin hosts for a partner. `url`: one exact URL, which answered 410. */
export type EndpointKind = "origin" | "url";

/** A change of a circuit by the owner of its shard, written with the outcome that caused it. */
export interface CircuitChange extends QueueKey {
  /** The id of its row, if there is none yet. */
  readonly endpointId: EndpointId;
  readonly kind: EndpointKind;
  /** https://host:port, or the exact URL. */
  readonly target: string;
  readonly circuit: Circuit;
  /** Restored if the outcome cannot be stored. */
  readonly before: Circuit;
  /** Increases with each change by the worker: of those in one commit the highest one applies. */
  readonly changeNo: number;
  /** The epoch of the shard: a change by an earlier owner is dropped. */
  readonly epoch: number;
  /** The version that the change is based on: it is dropped if a person changed the circuit since. */
  readonly controlNo: number;
  /** The event of a new state, written only if the row was changed. */
  readonly event: { readonly id: EventId; readonly kind: "breaker_open" | "breaker_closed" | "endpoint_gone" } | null;
}

/** A circuit as stored in the database. */
export interface LoadedCircuit extends QueueKey {
  readonly circuit: Circuit;
  readonly controlNo: number;
}

/**
 * The number of circuits per partner in a worker's memory. Beyond it, those that changed longest ago are treated as
 * closed: after one attempt, or five, the state is known again.
 */
export const circuitsPerPartnerMax = 1_000;

/** Stores circuits, for the workers that own them. */
export interface CircuitStore {
  /**
   * Loads, for a new owner, the circuits of these shards that are tripped, gone or failing, and those that a person has
   * changed. Of each partner at most `circuitsPerPartnerMax`, the last changed first.
   */
  load(shards: readonly number[]): Promise<readonly LoadedCircuit[]>;
  /** Loads those circuits of these shards that a person has changed, for their owner, who knows the others. */
  loadChangedByHand(shards: readonly number[]): Promise<readonly LoadedCircuit[]>;
}

export interface StoredEndpoint {
  readonly partnerId: PartnerId;
  readonly id: EndpointId;
  readonly kind: EndpointKind;
  readonly target: string;
  readonly state: CircuitState;
  readonly failures: number;
  readonly lastReason: FailureReason | null;
  readonly openedAt: Date | null;
  readonly probeAt: Date | null;
  readonly probes: number;
  readonly updatedAt: Date;
}

export interface EndpointSearch {
  readonly partnerId?: PartnerId;
  readonly state?: CircuitState;
  /** The last one of the previous page: the newest come first. */
  readonly after?: EndpointId;
  readonly limit: number;
}

/** The same circuits, for the APIs. */
export interface EndpointStore {
  search(search: EndpointSearch): Promise<readonly StoredEndpoint[]>;
  /** Closes it on an operator's request, with its event. Undefined if there is none; a closed one stays unchanged. */
  close(id: EndpointId, partnerId: PartnerId | undefined): Promise<StoredEndpoint | undefined>;
}
