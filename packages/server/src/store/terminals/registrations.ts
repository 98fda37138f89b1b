import type { TerminalSequence } from "../../ledger/store.ts";

/** What the operator registered for a terminal; empty texts where nothing is. */
export type Registration = Omit<TerminalSequence, "traceNo" | "invoiceNo" | "batchNo">;

const terminalsMax = 10_000;
const nothing: Registration = { merchantId: "", merchantName: "", merchantAddress: "", deviceId: "", appName: "" };

/**
 * What was registered for terminals when this instance last looked. It may be old: whoever uses it has PostgreSQL
 * compare. Only terminals for which something is registered are remembered, the latest ones.
 */
export class Registrations {
  readonly #known = new Map<string, Registration>();

  of(terminal: string): Registration {
    return this.#known.get(terminal) ?? nothing;
  }

  note(terminal: string, { merchantId, merchantName, merchantAddress, deviceId, appName }: Registration): void {
    this.#known.delete(terminal);
    if (![merchantId, merchantName, merchantAddress, deviceId, appName].some((text) => text !== "")) return;
    this.#known.set(terminal, { merchantId, merchantName, merchantAddress, deviceId, appName });
    const [oldest] = this.#known.keys();
    if (this.#known.size > terminalsMax && oldest !== undefined) this.#known.delete(oldest);
  }
}
