import type { CircuitChange, CircuitStore, LoadedCircuit } from "../../packages/server/src/delivery/circuit.ts";
import type { PartnerId } from "../../packages/server/src/ids.ts";
import type { Session } from "./database.ts";
import type { CircuitRow, Tables } from "./tables.ts";

export function circuitKey(partnerId: PartnerId, queue: string): string {
  return `${partnerId} ${queue}`;
}

/** Writes what an outcome changes of a circuit, unless a later owner or a person changed it since. */
export function writeCircuit(tables: Tables, change: CircuitChange, nowUs: number): void {
  const { partnerId, queue, circuit, epoch, controlNo } = change;
  const key = circuitKey(partnerId, queue);
  const row = tables.circuits.get(key);
  if (row !== undefined && (row.epoch > epoch || row.controlNo !== controlNo)) return;
  const probeAtUs = circuit.probeInMs === null ? null : nowUs + circuit.probeInMs * 1_000;
  tables.circuits.set(key, { partnerId, queue, circuit, probeAtUs, writtenUs: nowUs, epoch, controlNo });
}

export function closeCircuit(row: CircuitRow): void {
  row.circuit = { state: "closed", failures: 0, probes: 0, probeInMs: null, lastReason: row.circuit.lastReason };
  row.probeAtUs = null;
  row.controlNo += 1;
}

/** The circuits of endpoints in the simulated database. */
export class SimulatedCircuits implements CircuitStore {
  readonly #session: Session;
  readonly #onLoaded: (loaded: readonly LoadedCircuit[]) => void;

  /** @param onLoaded is called when the answer arrives */
  constructor(session: Session, onLoaded: (loaded: readonly LoadedCircuit[]) => void) {
    this.#session = session;
    this.#onLoaded = onLoaded;
  }

  load(shards: readonly number[]): Promise<readonly LoadedCircuit[]> {
    const isOfInterest = ({ circuit, controlNo }: CircuitRow) =>
      circuit.state !== "closed" || circuit.failures > 0 || controlNo > 0;
    return this.#load("circuits", shards, isOfInterest);
  }

  loadChangedByHand(shards: readonly number[]): Promise<readonly LoadedCircuit[]> {
    return this.#load("changed circuits", shards, ({ controlNo }) => controlNo > 0);
  }

  async #load(
    name: string,
    shards: readonly number[],
    isWanted: (row: CircuitRow) => boolean,
  ): Promise<readonly LoadedCircuit[]> {
    const wanted = new Set(shards);
    const { tables, database } = this.#session;
    const loaded = await this.#session.read(name, () => {
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
