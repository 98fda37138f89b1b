import type { CircuitChange, CircuitState, LoadedCircuit } from "../../packages/server/src/delivery/circuit.ts";
import type { PartnerId } from "../../packages/server/src/ids.ts";
import { circuitKey } from "../database/circuits.ts";
import type { Instance } from "../service/instance.ts";

interface Known {
  /** As it was loaded or changed, which tells one change from the next. */
  readonly circuit: CircuitChange["circuit"];
  readonly state: CircuitState;
  readonly epoch: number;
  readonly controlNo: number;
  readonly sinceMs: number;
  /** In simulated time. */
  readonly probeAtMs: number;
}

/** The circuits that one worker must know, from its reads and its own writes. */
export class CircuitsKnown {
  readonly #known = new Map<string, Known>();
  readonly #epochOf: (partnerId: PartnerId) => number | undefined;
  readonly #nowMs: () => number;

  constructor(worker: Instance, nowMs: () => number) {
    this.#epochOf = (partnerId) => worker.worker.ownership.epochOf(partnerId);
    this.#nowMs = nowMs;
  }

  loaded(loaded: readonly LoadedCircuit[], epochOf: (partnerId: PartnerId) => number): void {
    for (const { partnerId, queue, circuit, controlNo } of loaded) {
      const key = circuitKey(partnerId, queue);
      const epoch = this.#epochOf(partnerId) ?? epochOf(partnerId);
      const known = this.#known.get(key);
      if (known !== undefined && known.epoch === epoch && known.controlNo >= controlNo) continue;
      this.#set(key, circuit, epoch, controlNo);
    }
  }

  changed({ partnerId, queue, circuit, epoch, controlNo }: CircuitChange): void {
    // A circuit of an earlier ownership may be dropped or not.
    const current = this.#epochOf(partnerId);
    if (current === undefined || current === epoch) this.#set(circuitKey(partnerId, queue), circuit, epoch, controlNo);
  }

  /** The change could not be stored. An endpoint whose probe failed stays open, and its next probe at its time. */
  withdrawn({ partnerId, queue, circuit, before }: CircuitChange): void {
    const key = circuitKey(partnerId, queue);
    const known = this.#known.get(key);
    if (known?.circuit !== circuit || (before.state === "open" && circuit.state === "open")) return;
    this.#known.set(key, { ...known, state: before.state, probeAtMs: known.sinceMs + (before.probeInMs ?? 0) });
  }

  /** Undefined: closed, or not known under this epoch. */
  find(partnerId: PartnerId, queue: string, epoch: number): Known | undefined {
    const known = this.#known.get(circuitKey(partnerId, queue));
    return known?.epoch === epoch && known.state !== "closed" ? known : undefined;
  }

  #set(key: string, circuit: CircuitChange["circuit"], epoch: number, controlNo: number): void {
    const { state, probeInMs } = circuit;
    const nowMs = this.#nowMs();
    this.#known.set(key, { circuit, state, epoch, controlNo, sinceMs: nowMs, probeAtMs: nowMs + (probeInMs ?? 0) });
  }
}
