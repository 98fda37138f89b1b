import type { EndpointId, PartnerId } from "../ids.ts";
import type { Page } from "../page.ts";
import type { CircuitState } from "./circuit.ts";
import type { EndpointKind } from "./circuits.ts";
import type { FailureReason } from "./delivery.ts";

/** An endpoint as the APIs show it. */
export interface Endpoint {
  readonly partnerId: PartnerId;
  readonly id: EndpointId;
  readonly kind: EndpointKind;
  readonly target: string;
  readonly state: CircuitState;
  readonly failures: number;
  readonly lastReason: FailureReason | null;
  readonly openedAt: Date | null;
  /** While it is open: the time of the next probe. */
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
  /** Lists endpoints that have failed at some time, the newest first. One that never failed has no row. */
  list(search: EndpointSearch): Promise<Page<Endpoint>>;
  /**
   * Closes it on a person's request, with its event, and notifies its owner. Undefined if there is none, or it belongs
   * to another partner; a closed one stays unchanged.
   */
  close(id: EndpointId, partnerId?: PartnerId): Promise<Endpoint | undefined>;
}
