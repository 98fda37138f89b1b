import type { CircuitStore, LoadedCircuit } from "../../packages/server/src/delivery/limits/circuits.ts";
import type { HomeSessions } from "./database.ts";
import type { CircuitRow } from "./tables.ts";

/** The circuits of endpoints in the simulated database. @param onLoaded is called when the answer arrives */
export function simulatedCircuits(
  homes: HomeSessions,
  onLoaded: (loaded: readonly LoadedCircuit[]) => void,
): CircuitStore {
  const { tables, database } = homes;
  const load = async (shards: readonly number[], isWanted: (row: CircuitRow) => boolean) => {
    const wanted = new Set(shards);
    const loaded = await homes.about(shards).read(() => {
      const partners = new Set(tables.merchants.filter(({ shard }) => wanted.has(shard)).map(({ id }) => id));
      const nowUs = database.nowUs();
      return [...tables.circuits.values()]
        .filter((row) => partners.has(row.partnerId) && isWanted(row))
        .map((row) => loadedOf(row, nowUs));
    });
    onLoaded(loaded);
    return loaded;
  };
  return {
    load: (shards) =>
      load(shards, ({ circuit, controlNo }) => circuit.state !== "closed" || circuit.failures > 0 || controlNo > 0),
    loadChangedByHand: (shards) => load(shards, ({ controlNo }) => controlNo > 0),
  };
}

function loadedOf({ partnerId, queue, circuit, probeAtUs, controlNo }: CircuitRow, nowUs: number): LoadedCircuit {
  const probeInMs = probeAtUs === null ? null : Math.max(0, (probeAtUs - nowUs) / 1_000);
  return { partnerId, queue, circuit: { ...circuit, probeInMs }, controlNo };
}
