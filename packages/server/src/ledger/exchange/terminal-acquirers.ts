import type { Acquirers } from "../../acquirer/acquirer.ts";
import { BoundedMap } from "../../bounded-map.ts";
import type { PartnerId } from "../../ids.ts";

export interface TerminalAcquirerStore {
  /** Empty: the acquirer of the settings, also for a terminal that is not known yet. */
  acquirerOf(partnerId: PartnerId, tid: string): Promise<string>;
}

const terminalsMax = 50_000;

/**
 * The acquirer of each terminal's commands, as this instance last read it. It may be old: each INIT looks again under
 * the terminal's lock, and a different one is read again.
 */
export class TerminalAcquirers {
  readonly #store: TerminalAcquirerStore;
  readonly #acquirers: Acquirers;
  readonly #known = new BoundedMap<string, string>(terminalsMax);

  constructor(store: TerminalAcquirerStore, acquirers: Acquirers) {
    this.#store = store;
    this.#acquirers = acquirers;
  }

  async of(partnerId: PartnerId, tid: string): Promise<string> {
    if (tid === "" || this.#acquirers.names().every((name) => name === "")) return "";
    return this.#known.get(`${partnerId} ${tid}`) ?? (await this.reread(partnerId, tid));
  }

  async reread(partnerId: PartnerId, tid: string): Promise<string> {
    const acquirer = await this.#store.acquirerOf(partnerId, tid);
    this.#known.set(`${partnerId} ${tid}`, acquirer);
    return acquirer;
  }
}
