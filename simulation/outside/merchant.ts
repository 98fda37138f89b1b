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
const rates = [null, null, null, 3, 20] as const;

/** A partner with its endpoints. The first origin is that of its registered URL. */
export class Merchant {
  readonly id: PartnerId;
  readonly shard: number;
  readonly endpoints: readonly SimulatedEndpoint[];
  /** Its share of all notifications. */
  readonly weight: number;
  #partner: Partner;

  constructor(number: number, random: SimulationRandom) {
    this.shard = random.below(shardCount);
    const [index, shard] = [number.toString(16).padStart(4, "0"), this.shard.toString(16).padStart(2, "0")];
    this.id = `00000000-0000-7000-8000-${index}000000${shard}` as PartnerId;
    this.endpoints = ["a", "b", "c"].map((name) => new SimulatedEndpoint(`https://${name}${number}.test`, random));
    this.weight = random.pick([1, 1, 1, 2, 8]);
    const maxInFlight = random.pick([1, 2, 4, 8, 32]);
    const settings = {
      callBackUrl: this.urlOf(0),
      callBackUrlByCommand: {},
      retry: random.pick(retries),
      maxInFlight,
      maxPerSecond: random.pick(rates),
      ordering: "chain",
    };
    this.#partner = { id: this.id, state: "active", settings, pauses: [] } as unknown as Partner;
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

  register(endpoint: number): void {
    const { settings } = this.#partner;
    this.#partner = { ...this.#partner, settings: { ...settings, callBackUrl: this.urlOf(endpoint) } };
  }

  endpointAt(url: string): SimulatedEndpoint | undefined {
    return this.endpoints.find(({ origin }) => url.startsWith(`${origin}/`));
  }
}
