import { createHash } from "node:crypto";
import type { PartnerId } from "../ids.ts";
import { signOf } from "./breaker.ts";
import type { EndpointKey, EndpointSighting, EndpointStore, TroubledEndpoint } from "./endpoints-store.ts";
import type { Attempt } from "./store.ts";

export interface EndpointsParts {
  readonly store: Pick<EndpointStore, "troubled">;
  readonly onTrouble: (error: unknown) => void;
  /** An endpoint is closed again: what waited for it may leave. */
  readonly onClosed: (partnerId: PartnerId) => void;
}

/** What all that goes to one origin waits in. */
export function originQueue(url: string): string {
  return new URL(url).origin;
}

/** What waits for a URL that is gone. */
export function urlQueue(url: string): string {
  return `${originQueue(url)} ${createHash("sha256").update(url).digest("hex")}`;
}

interface Seen {
  readonly endpoint: TroubledEndpoint;
  /** The first read that began after it was recorded, and knows better. */
  untilRead: number;
}

interface Attempted {
  readonly partnerId: PartnerId;
  readonly attempt: Attempt;
  readonly retryAfterMs: number | null;
  readonly isProbe: boolean;
}

/**
 * The endpoints that are in trouble, as the database had them a moment ago. Whether a delivery may leave is decided by
 * the claim; this keeps what is handed over, or was taken before, from leaving after all.
 */
export class Endpoints {
  readonly #parts: EndpointsParts;
  #troubled = new Map<string, TroubledEndpoint>();
  /** What attempts told here, while the database may not say so yet. */
  readonly #seen = new Map<string, Seen>();
  #reads = 0;
  /** They were read once. */
  known = false;
  #refreshing: Promise<void> | undefined;
  #again = false;

  constructor(parts: EndpointsParts) {
    this.#parts = parts;
  }

  /** Why nothing may be sent to the URL now; undefined when it may. No URL at all is told by the attempt. */
  blocked(partnerId: PartnerId, url: string | null): "open" | "gone" | undefined {
    if (this.#troubled.size === 0 || url === null || !URL.canParse(url)) return undefined;
    if (this.#troubled.get(keyOf({ partnerId, queue: urlQueue(url) }))?.state === "gone") return "gone";
    return this.#troubled.get(keyOf({ partnerId, queue: originQueue(url) }))?.state === "open" ? "open" : undefined;
  }

  /** Partners of which something waits for an endpoint. */
  blockedPartners(): ReadonlySet<PartnerId> {
    const blocked = [...this.#troubled.values()].filter(({ state }) => state !== "closed");
    return new Set(blocked.map(({ partnerId }) => partnerId));
  }

  /**
   * What the attempt tells of its endpoints, to be recorded with its outcome. Nothing, of a success at an endpoint that
   * has not failed: the usual case costs no statement.
   */
  sightings({ partnerId, attempt, retryAfterMs, isProbe }: Attempted): readonly EndpointSighting[] {
    const sign = signOf(attempt);
    if (sign === "lives" && this.#troubled.size === 0 && !isProbe) return [];
    if (sign === "nothing" || !URL.canParse(attempt.url)) return [];
    const queue = originQueue(attempt.url);
    const { reason } = attempt;
    const seen = { partnerId, reason, retryAfterMs, isProbe, atMs: attempt.startedAtMs + attempt.durationMs };
    const origin = { ...seen, kind: "origin", target: queue, queue } as const;
    if (sign === "fails") {
      // From now on a success must be recorded too, whether or not the database was asked since.
      if (!this.#troubled.has(keyOf({ partnerId, queue }))) this.#see({ partnerId, queue, state: "closed" });
      return [{ ...origin, sign }];
    }
    const lives =
      isProbe || this.#troubled.has(keyOf({ partnerId, queue })) ? [{ ...origin, sign: "lives" } as const] : [];
    if (sign === "lives") return lives;
    const target = new URL(attempt.url).href;
    const gone = urlQueue(attempt.url);
    // Not only once the database was asked again: what is written meanwhile would be sent there.
    this.#see({ partnerId, queue: gone, state: "gone" });
    return [...lives, { ...seen, kind: "url", target, queue: gone, sign: "gone" }];
  }

  /** They are durable: the database knows what they told, and more. */
  recorded(sightings: readonly EndpointSighting[]): void {
    for (const sighting of sightings) {
      const seen = this.#seen.get(keyOf(sighting));
      if (seen !== undefined) seen.untilRead = this.#reads + 1;
    }
  }

  /** Reads anew what is in trouble. Never rejects. */
  refresh(): Promise<void> {
    // Asked for while it reads: what it reads may be older than the question.
    if (this.#refreshing !== undefined) this.#again = true;
    this.#refreshing ??= this.#readAll().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #readAll(): Promise<void> {
    do {
      this.#again = false;
      await this.#read();
    } while (this.#again);
  }

  async #read(): Promise<void> {
    this.#reads += 1;
    const nth = this.#reads;
    try {
      const rows = await this.#parts.store.troubled();
      this.known = true;
      const before = this.#troubled;
      this.#troubled = new Map(rows.map((row) => [keyOf(row), row]));
      for (const [key, { endpoint, untilRead }] of this.#seen) {
        if (nth >= untilRead) this.#seen.delete(key);
        else if (endpoint.state === "gone" || !this.#troubled.has(key)) this.#troubled.set(key, endpoint);
      }
      for (const [key, { partnerId, state }] of before) {
        if (state !== "closed" && (this.#troubled.get(key)?.state ?? "closed") === "closed") {
          this.#parts.onClosed(partnerId);
        }
      }
    } catch (error) {
      this.#parts.onTrouble(error);
    }
  }

  #see(endpoint: TroubledEndpoint): void {
    const key = keyOf(endpoint);
    this.#troubled.set(key, endpoint);
    this.#seen.set(key, { endpoint, untilRead: Number.POSITIVE_INFINITY });
  }
}

function keyOf({ partnerId, queue }: EndpointKey): string {
  return `${partnerId} ${queue}`;
}
