import type { EndpointId, PartnerId } from "../ids.ts";
import type { EndpointStanding, EndpointState, Sighting } from "./breaker.ts";
import type { FailureReason } from "./store.ts";

/** `origin`: all that one origin hosts for a partner. `url`: one exact URL, which answered 410. */
export type EndpointKind = "origin" | "url";

/** The queue of pending deliveries that an endpoint stands for: see `originQueue` and `urlQueue`. */
export interface EndpointKey {
  readonly partnerId: PartnerId;
  readonly queue: string;
}

/** What one attempt tells of one endpoint. */
export interface EndpointSighting extends EndpointKey, Sighting {
  readonly kind: EndpointKind;
  /** https://host:port, or the exact URL. */
  readonly target: string;
  /** When the attempt ended: sightings count in this order. */
  readonly atMs: number;
}

/** The circuit breaker, as the store is given it. */
export type Breaker = (standing: EndpointStanding, sighting: Sighting) => EndpointStanding;

/** An endpoint that is open, gone, or has failed since it last answered. */
export interface TroubledEndpoint extends EndpointKey {
  readonly state: EndpointState;
}

export interface StoredEndpoint {
  readonly partnerId: PartnerId;
  readonly id: EndpointId;
  readonly kind: EndpointKind;
  readonly target: string;
  readonly state: EndpointState;
  readonly failures: number;
  readonly lastReason: FailureReason | null;
  readonly openedAt: Date | null;
  readonly probeAt: Date | null;
  readonly probes: number;
  readonly updatedAt: Date;
}

export interface EndpointSearch {
  readonly partnerId?: PartnerId;
  readonly state?: EndpointState;
  /** The last of the page before: the newest come first. */
  readonly after?: EndpointId;
  readonly limit: number;
}

/** For how long a partner's notifications are tried. */
export interface ScheduleLength {
  readonly partnerId: PartnerId;
  readonly lengthMs: number;
}

export interface EndpointStore {
  troubled(): Promise<readonly TroubledEndpoint[]>;
  search(search: EndpointSearch): Promise<readonly StoredEndpoint[]>;
  /** Closes it by hand, with its event. Undefined when there is none; one that is closed stays as it is. */
  close(id: EndpointId, partnerId: PartnerId | undefined): Promise<StoredEndpoint | undefined>;
  /** Another delivery may be the probe after `delayMs`: the one that was to be it cannot leave. */
  releaseProbe(key: EndpointKey, delayMs: number): Promise<void>;
  /** Parks what waits for endpoints that are open or gone, and whose schedule is over. Resolves to how many. */
  parkOverdue(lengths: readonly ScheduleLength[], rowsMax: number): Promise<number>;
  /** Instances whose lease stands. */
  livingInstances(): Promise<number>;
}
