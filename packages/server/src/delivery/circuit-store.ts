import type { EndpointId, EventId, PartnerId } from "../ids.ts";
import type { Circuit, CircuitState } from "./circuit.ts";
import type { FailureReason, QueueKey } from "./store.ts";

/** `origin`: all that one origin hosts for a partner. `url`: one exact URL, which answered 410. */
export type EndpointKind = "origin" | "url";

/** A circuit as the owner of its shard writes it, with the outcome that changed it. */
export interface CircuitChange extends QueueKey {
  /** Of its row, where there is none yet. */
  readonly endpointId: EndpointId;
  readonly kind: EndpointKind;
  /** https://host:port, or the exact URL. */
  readonly target: string;
  readonly circuit: Circuit;
  /** Rises with each change that the worker makes: of those of one commit the highest stands. */
  readonly changeNo: number;
  /** Of the shard: an earlier owner's change is dropped. */
  readonly epoch: number;
  /** What the change was made of: it is dropped when a person changed the circuit since. */
  readonly controlNo: number;
  /** Its state is another now: the event, written only where the row was changed. */
  readonly event: { readonly id: EventId; readonly kind: "breaker_open" | "breaker_closed" | "endpoint_gone" } | null;
}

/** A circuit as it stands in the database. */
export interface LoadedCircuit extends QueueKey {
  readonly circuit: Circuit;
  readonly controlNo: number;
}

/**
 * Circuits of each partner in a worker's memory. Beyond it, those that changed the longest ago are taken for closed:
 * one attempt, or five, tell again what was known.
 */
export const circuitsPerPartnerMax = 1_000;

/** Circuits, for the workers that own them. */
export interface CircuitStore {
  /**
   * Of these shards, those that are tripped, gone or failing, and those that a person has changed: for a new owner. Of
   * each partner so many as it keeps, those that changed last.
   */
  load(shards: readonly number[]): Promise<readonly LoadedCircuit[]>;
  /** Of these shards, those that a person has changed: for their owner, who knows the others. */
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
  /** The last of the page before: the newest come first. */
  readonly after?: EndpointId;
  readonly limit: number;
}

/** The same circuits, for people. */
export interface EndpointStore {
  search(search: EndpointSearch): Promise<readonly StoredEndpoint[]>;
  /** Closes it by hand, with its event. Undefined when there is none; one that is closed stays as it is. */
  close(id: EndpointId, partnerId: PartnerId | undefined): Promise<StoredEndpoint | undefined>;
}
