import type { PartnerId, TransactionId } from "../ids.ts";

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

/** Why a notification is parked that was pending in a restored database. */
export const restoredReason = "restored";

/** A restore of the database that a start has noticed. */
export interface Restore {
  readonly name: string;
  /** When the restored ledger ends; null: no instance ran at that time. */
  readonly endsAtMs: number | null;
  readonly heldAtMs: number;
  /** Notifications that were pending, and were parked. */
  readonly held: number;
  /** Null: commands that were in flight are still held. */
  readonly releasedAtMs: number | null;
}

/** The notifications of a partner that were pending in the restored database, and are still parked. */
export interface HeldShare {
  readonly partnerId: PartnerId;
  readonly count: number;
  /** Notifications that were tried before the end of the restored ledger. */
  readonly attempted: number;
  readonly oldestAtMs: number;
  readonly newestAtMs: number;
}

/** A command that was in flight at the end of the restored ledger: its outcome is known to the acquirer alone. */
export interface HeldCommand {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  readonly command: string;
  readonly reqId: string | null;
  readonly createdAtMs: number;
}

export interface RestoreStore {
  /** The last restore; undefined: the database was never restored. */
  last(): Promise<Restore | undefined>;
  /** Counts the notifications that are parked for {@link restoredReason}, by partner. */
  shares(): Promise<readonly HeldShare[]>;
  /** At most `rowsMax` commands that the restore holds. */
  commands(name: string, rowsMax: number): Promise<readonly HeldCommand[]>;
  /** Has held commands end as any in doubt. Safe to repeat. */
  release(name: string): Promise<void>;
}
