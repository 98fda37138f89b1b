import type { Clock } from "./clock.ts";
import { type InstanceId, newId } from "./ids.ts";

/**
 * One running service process, as the rows name it that belong to it: a row is its own only under the epoch it was
 * taken in.
 */
export interface Instance {
  readonly id: InstanceId;
  readonly epoch: number;
}

/** What this process may rely on: the lease that keeps other instances off its rows. */
export interface Lease {
  /** The instance under which rows are taken now; undefined while the lease cannot be relied on. */
  current(): Instance | undefined;
  /** Milliseconds for which the lease certainly stands, by this process's own monotonic clock; 0 when it is over. */
  remainingMs(): number;
}

/** Where leases are kept, on the database's clock. */
export interface InstanceStore {
  /** Writes the lease down, under a new epoch. */
  join(instance: Instance, leaseMs: number): Promise<void>;
  /** False when the lease had run out: other instances may have taken the rows. */
  renew(instance: Instance, leaseMs: number): Promise<boolean>;
  leave(instance: Instance): Promise<void>;
}

const leaseMs = 8_000;
const renewEveryMs = 2_000;

/**
 * Keeps this process's lease. Its end is counted on our own monotonic clock from before each renewal was sent, so
 * that we never believe in it longer than the database does. A lost lease is taken anew under the next epoch: what
 * was ours under the old one belongs to whoever takes it.
 */
export class InstanceLease implements Lease {
  readonly #store: InstanceStore;
  readonly #clock: Clock;
  readonly #onTrouble: (error: unknown) => void;
  #instance: Instance = { id: newId<"instance">(), epoch: 0 };
  #endsMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #renewing: Promise<void> | undefined;
  #left = false;

  constructor(store: InstanceStore, clock: Clock, onTrouble: (error: unknown) => void) {
    this.#store = store;
    this.#clock = clock;
    this.#onTrouble = onTrouble;
  }

  /** Resolves when the lease stands; rejects when the first one cannot be had. */
  async start(): Promise<void> {
    await this.#join();
    this.#timer = setInterval(() => {
      this.#renewing ??= this.#renew().finally(() => {
        this.#renewing = undefined;
      });
    }, renewEveryMs);
  }

  current(): Instance | undefined {
    return this.remainingMs() > 0 ? this.#instance : undefined;
  }

  remainingMs(): number {
    return Math.max(0, this.#endsMs - this.#clock.monotonicMs());
  }

  /** Gives the lease up at once: what is still ours is due for the others. */
  async stop(): Promise<void> {
    this.#left = true;
    clearInterval(this.#timer);
    await this.#renewing;
    this.#endsMs = 0;
    await this.#store.leave(this.#instance).catch(this.#onTrouble);
  }

  async #renew(): Promise<void> {
    const sentMs = this.#clock.monotonicMs();
    try {
      if (await this.#store.renew(this.#instance, leaseMs)) this.#endsMs = sentMs + leaseMs;
      else if (!this.#left) await this.#join();
    } catch (error) {
      this.#onTrouble(error);
    }
  }

  async #join(): Promise<void> {
    const sentMs = this.#clock.monotonicMs();
    const next = { id: this.#instance.id, epoch: this.#instance.epoch + 1 };
    await this.#store.join(next, leaseMs);
    this.#instance = next;
    this.#endsMs = sentMs + leaseMs;
  }
}
