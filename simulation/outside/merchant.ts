import type { NotifiedCommand } from "@paybell/contract";
import type { PartnerId } from "../../packages/server/src/ids.ts";
import type { Partner, PartnerState } from "../../packages/server/src/partners/partner.ts";
import { shardCount } from "../../packages/server/src/shard.ts";
import type { SimulationRandom } from "../random.ts";
import { SimulatedEndpoint } from "./endpoint.ts";

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
  #partner: Partner;
  #earlier: { readonly partner: Partner; readonly untilMs: number };

  constructor(number: number, random: SimulationRandom) {
    this.shard = random.below(shardCount);
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
    this.#partner = { id: this.id, state: "active", settings, pauses: [] } as unknown as Partner;
    this.#earlier = { partner: this.#partner, untilMs: 0 };
  }

  /** As it is committed. */
  get partner(): Partner {
    return this.#partner;
  }

  urlOf(endpoint: number): string {
    return `${this.endpoints[endpoint]?.origin}/ipn`;
  }

  setState(state: PartnerState): void {
    this.#partner = { ...this.#partner, state };
  }

  /** Registers a URL for a command; without an endpoint, none. Without a command: the URL of all others. */
  register(endpoint: number | undefined, command: NotifiedCommand | undefined, nowMs: number): void {
    this.#earlier = { partner: this.#partner, untilMs: nowMs + believedMs };
    const { settings } = this.#partner;
    const url = endpoint === undefined ? undefined : this.urlOf(endpoint);
    const changed =
      command === undefined
        ? { callBackUrl: url ?? settings.callBackUrl }
        : { callBackUrlByCommand: { ...settings.callBackUrlByCommand, [command]: url } };
    this.#partner = { ...this.#partner, settings: { ...settings, ...changed } };
  }

  /** The settings as an instance holds them, which may be older. */
  settingsHeld(nowMs: number, random: SimulationRandom): Partner["settings"] {
    const isOlder = nowMs < this.#earlier.untilMs && random.chance(0.5);
    return (isOlder ? this.#earlier.partner : this.#partner).settings;
  }

  endpointAt(url: string): SimulatedEndpoint | undefined {
    return this.endpoints.find(({ origin }) => url.startsWith(`${origin}/`));
  }
}
