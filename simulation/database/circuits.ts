import type { CircuitStore, LoadedCircuit } from "../../packages/server/src/delivery/circuits.ts";
import type { HomeSessions } from "./database.ts";
import type { CircuitRow } from "./tables.ts";

/** The circuits of endpoints in the simulated database. */
export class SimulatedCircuits implements CircuitStore {
  readonly #homes: HomeSessions;
  readonly #onLoaded: (loaded: readonly LoadedCircuit[]) => void;

  /** @param onLoaded is called when the answer arrives */
  constructor(homes: HomeSessions, onLoaded: (loaded: readonly LoadedCircuit[]) => void) {
    this.#homes = homes;
    this.#onLoaded = onLoaded;
  }

  load(shards: readonly number[]): Promise<readonly LoadedCircuit[]> {
    const isOfInterest = ({ circuit, controlNo }: CircuitRow) =>
      circuit.state !== "closed" || circuit.failures > 0 || controlNo > 0;
    return this.#load(shards, isOfInterest);
  }

  loadChangedByHand(shards: readonly number[]): Promise<readonly LoadedCircuit[]> {
    return this.#load(shards, ({ controlNo }) => controlNo > 0);
  }

  async #load(shards: readonly number[], isWanted: (row: CircuitRow) => boolean): Promise<readonly LoadedCircuit[]> {
    const wanted = new Set(shards);
    const { tables, database } = this.#homes;
    const loaded = await this.#homes.about(shards).read(() => {
      const partners = new Set(tables.merchants.filter(({ shard }) => wanted.has(shard)).map(({ id }) => id));
      const nowUs = database.nowUs();
      return [...tables.circuits.values()]
        .filter((row) => partners.has(row.partnerId) && isWanted(row))
        .map((row) => loadedOf(row, nowUs));
    });
    this.#onLoaded(loaded);
    return loaded;
  }
}

function loadedOf({ partnerId, queue, circuit, probeAtUs, controlNo }: CircuitRow, nowUs: number): LoadedCircuit {
  const probeInMs = probeAtUs === null ? null : Math.max(0, (probeAtUs - nowUs) / 1_000);
  return { partnerId, queue, circuit: { ...circuit, probeInMs }, controlNo };
}
