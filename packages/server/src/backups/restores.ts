import type { HeldCommand, HeldShare, Restore, RestoreStore } from "./store.ts";

export interface RestoreReport {
  readonly restore: Restore;
  readonly shares: readonly HeldShare[];
  readonly commands: readonly HeldCommand[];
}

const commandsMax = 500;

/** The last restore of the database, for the operator who reconciles it. */
export class Restores {
  readonly #store: RestoreStore;

  constructor(store: RestoreStore) {
    this.#store = store;
  }

  /** Undefined if the database was never restored. */
  async report(): Promise<RestoreReport | undefined> {
    const restore = await this.#store.last();
    if (restore === undefined) return undefined;
    const [shares, commands] = await Promise.all([
      this.#store.shares(),
      restore.releasedAtMs === null ? this.#store.commands(restore.name, commandsMax) : [],
    ]);
    return { restore, shares, commands };
  }

  /** Lets commands that were in flight end as ERROR 96. Notifications stay parked until they are redelivered. */
  async release(): Promise<RestoreReport | undefined> {
    const restore = await this.#store.last();
    if (restore !== undefined) await this.#store.release(restore.name);
    return this.report();
  }
}
