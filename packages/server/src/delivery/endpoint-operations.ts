import type { EndpointId, PartnerId } from "../ids.ts";
import type { CircuitState, EndpointKind } from "./circuit.ts";
import type { FailureReason } from "./delivery.ts";

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

/** An endpoint as the APIs show it. Times are ISO 8601. */
export interface EndpointView extends Omit<StoredEndpoint, "openedAt" | "probeAt" | "updatedAt"> {
  readonly openedAt: string | null;
  /** While it is open: the time of the next probe. */
  readonly probeAt: string | null;
  readonly updatedAt: string;
}

export interface EndpointPage {
  readonly items: readonly EndpointView[];
  readonly next: EndpointId | null;
}

/** Lists and closes endpoints, for the APIs. */
export class EndpointOperations {
  readonly #store: Pick<EndpointStore, "search" | "close">;
  readonly #onClosed: () => void;

  /** @param onClosed called when deliveries that waited may be sent at once */
  constructor(store: Pick<EndpointStore, "search" | "close">, onClosed: () => void) {
    this.#store = store;
    this.#onClosed = onClosed;
  }

  /** Lists endpoints that have failed at some time, the newest first. One that never failed has no row. */
  async list(search: EndpointSearch): Promise<EndpointPage> {
    const found = await this.#store.search({ ...search, limit: search.limit + 1 });
    const items = found.slice(0, search.limit).map(view);
    return { items, next: found.length > search.limit ? (items.at(-1)?.id ?? null) : null };
  }

  /** Undefined if there is none, or it belongs to another partner. Closing a closed one changes nothing. */
  async close(id: EndpointId, partnerId?: PartnerId): Promise<EndpointView | undefined> {
    const closed = await this.#store.close(id, partnerId);
    if (closed === undefined) return undefined;
    this.#onClosed();
    return view(closed);
  }
}

function view({ openedAt, probeAt, updatedAt, ...endpoint }: StoredEndpoint): EndpointView {
  return {
    ...endpoint,
    openedAt: openedAt?.toISOString() ?? null,
    probeAt: probeAt?.toISOString() ?? null,
    updatedAt: updatedAt.toISOString(),
  };
}
