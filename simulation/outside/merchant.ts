import type { NotifiedCommand } from "@paybell/contract";
import type { SeededRandom } from "../../faults/random.ts";
import { statusFailure } from "../../packages/server/src/delivery/attempt/status.ts";
import type { FailureReason } from "../../packages/server/src/delivery/delivery.ts";
import { type PartnerId, shardCount } from "../../packages/server/src/ids.ts";
import type { Partner, PartnerState } from "../../packages/server/src/partners/partner.ts";
import type { Session } from "../database/database.ts";

const retries = [
  [1, 2, 4],
  [2, 5, 10, 20],
  [5, 30, 120, 600],
] as const;
const rates = [null, null, 3, 20] as const;
/** An instance believes what it read of a partner for so long. */
const believedMs = 5_000;

/** A partner with its endpoints. The first origin is that of its registered URL. */
export class Merchant {
  readonly id: PartnerId;
  readonly shard: number;
  readonly endpoints: readonly SimulatedEndpoint[];
  /** Its share of all notifications. */
  readonly weight: number;
  /** As it is committed. */
  partner: Partner;
  #earlier: { readonly partner: Partner; readonly untilMs: number };

  constructor(number: number, random: SeededRandom) {
    this.shard = random.within(0, shardCount - 1);
    const [index, shard] = [number.toString(16).padStart(4, "0"), this.shard.toString(16).padStart(2, "0")];
    this.id = `00000000-0000-7000-8000-${index}000000${shard}` as PartnerId;
    this.endpoints = ["a", "b", "c"].map((name) => new SimulatedEndpoint(`https://${name}${number}.test`, random));
    this.weight = random.pick([1, 1, 1, 2, 8]);
    const maxInFlight = random.pick([1, 2, 4, 8, 32]);
    const settings = {
      callBackUrl: this.urlOf(0),
      callBackUrlByCommand: random.chance(0.5) ? { SETTLEMENT: this.urlOf(1) } : {},
      retry: random.pick(retries),
      maxInFlight,
      maxPerSecond: random.pick(rates),
      ordering: "chain",
    };
    this.partner = { id: this.id, state: "active", settings, pauses: [] } as unknown as Partner;
    this.#earlier = { partner: this.partner, untilMs: 0 };
  }

  urlOf(endpoint: number): string {
    return `${this.endpoints[endpoint]?.origin}/ipn`;
  }

  setState(state: PartnerState): void {
    this.partner = { ...this.partner, state };
  }

  /** Registers a URL for a command; without an endpoint, none. Without a command: the URL of all others. */
  register(endpoint: number | undefined, command: NotifiedCommand | undefined, nowMs: number): void {
    this.#earlier = { partner: this.partner, untilMs: nowMs + believedMs };
    const { settings } = this.partner;
    const url = endpoint === undefined ? undefined : this.urlOf(endpoint);
    const changed =
      command === undefined
        ? { callBackUrl: url ?? settings.callBackUrl }
        : { callBackUrlByCommand: { ...settings.callBackUrlByCommand, [command]: url } };
    this.partner = { ...this.partner, settings: { ...settings, ...changed } };
  }

  /** The settings as an instance holds them, which may be older. */
  settingsHeld(nowMs: number, random: SeededRandom): Partner["settings"] {
    const isOlder = nowMs < this.#earlier.untilMs && random.chance(0.5);
    return (isOlder ? this.#earlier.partner : this.partner).settings;
  }

  endpointAt(url: string): SimulatedEndpoint | undefined {
    return this.endpoints.find(({ origin }) => url.startsWith(`${origin}/`));
  }
}

export const failingModes = ["fails", "unavailable", "limits", "hangs", "refuses", "slow", "flaps"] as const;
export type EndpointMode = "accepts" | (typeof failingModes)[number];

/** The treatment of a POST. */
export interface Reception {
  /** Infinity: no answer arrives. */
  readonly afterMs: number;
  /** Null: the connection ends without an answer. */
  readonly status: number | null;
  readonly reason: FailureReason | null;
  readonly retryAfterMs?: number;
  /** Also if the connection broke before anybody knew. */
  readonly isAccepted: boolean;
}

export const refusal: Reception = { afterMs: 1, status: null, reason: "connect", isAccepted: false };

/** A receiver of notifications at one origin. */
export class SimulatedEndpoint {
  readonly origin: string;
  readonly #random: SeededRandom;
  mode: EndpointMode = "accepts";
  /** Since when it has been in order, in the world's time. */
  wellSinceMs = 0;
  readonly goneUrls = new Set<string>();

  constructor(origin: string, random: SeededRandom) {
    this.origin = origin;
    this.#random = random;
  }

  setMode(mode: EndpointMode, nowMs: number): void {
    if (mode === "accepts" && this.mode !== "accepts") this.wellSinceMs = nowMs;
    this.mode = mode;
  }

  receive(url: string): Reception {
    const random = this.#random;
    const afterMs = 1 + random.next() * random.next() * 60;
    const answered = (status: number, more: Partial<Reception> = {}): Reception => {
      const reason = statusFailure(status)?.reason ?? null;
      return { afterMs, status, reason, isAccepted: reason === null, ...more };
    };
    if (this.goneUrls.has(url)) return answered(410);
    const mode: Exclude<EndpointMode, "flaps"> =
      this.mode === "flaps" ? random.pick(["accepts", "fails", "refuses"] as const) : this.mode;
    switch (mode) {
      case "accepts":
        if (this.mode === "flaps" && random.chance(0.2))
          return { afterMs, status: null, reason: "reset", isAccepted: random.chance(0.5) };
        return answered(204);
      case "slow":
        return answered(204, { afterMs: afterMs * random.between(5, 60) });
      case "fails":
        return answered(500);
      case "unavailable":
        return answered(503, { retryAfterMs: random.within(0, 7) * 1_000 });
      case "limits":
        return answered(429, { retryAfterMs: random.within(0, 3) * 1_000 });
      case "refuses":
        return { ...refusal, afterMs };
      case "hangs":
        return { ...refusal, afterMs: Number.POSITIVE_INFINITY };
    }
  }
}

const refreshMs = 3_000;
const againMs = 500;

interface Known {
  partner: Partner;
  readMs: number;
}

export type SimulatedPartners = ReturnType<typeof simulatedPartners>;

/** Partners as one worker knows them: at most five seconds old. */
export function simulatedPartners(session: Session, onChanged: (id: PartnerId) => void) {
  const knownPartners = new Map<PartnerId, Known>();
  const asking = new Set<PartnerId>();

  function cached(id: PartnerId): Partner | undefined {
    const known = knownPartners.get(id);
    if (known === undefined || ageMs(known) > refreshMs) void ask(id);
    return isFresh(known) ? known.partner : undefined;
  }

  /** Whether the worker knows that it is paused. Unlike `cached` it asks for nothing. */
  function isPaused(id: PartnerId): boolean {
    const known = knownPartners.get(id);
    return isFresh(known) && known.partner.state === "paused";
  }

  function ageMs({ readMs }: Known): number {
    return session.loop.clock.monotonicMs() - readMs;
  }

  function isFresh(known: Known | undefined): known is Known {
    return known !== undefined && ageMs(known) <= believedMs;
  }

  /** A person changed it. */
  function changed(id: PartnerId): void {
    void ask(id);
  }

  async function ask(id: PartnerId): Promise<void> {
    if (asking.has(id)) return;
    asking.add(id);
    const sentMs = session.loop.clock.monotonicMs();
    try {
      const partner = await session.read(() => session.tables.merchantOf(id)?.partner);
      asking.delete(id);
      if (partner === undefined) return;
      const before = knownPartners.get(id);
      const wasKnown = isFresh(before);
      knownPartners.set(id, { partner, readMs: sentMs });
      if (before?.partner !== partner || !wasKnown) onChanged(id);
    } catch {
      session.loop.timers.after(againMs, () => {
        asking.delete(id);
        cached(id);
      });
    }
  }

  return { cached, isPaused, changed };
}
