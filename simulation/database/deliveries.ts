import type { Delivery } from "../../packages/server/src/delivery/delivery.ts";
import { orderWaitMaxMs } from "../../packages/server/src/delivery/queues/order.ts";
import type {
  DeliveryKey,
  DeliveryOutcome,
  DeliveryStore,
  Postponement,
  Precedence,
  QueueHead,
  QueuePage,
  QueueRead,
  Recorded,
} from "../../packages/server/src/delivery/store.ts";
import { shardOf } from "../../packages/server/src/ids.ts";
import type { Merchant } from "../outside/merchant.ts";
import type { World } from "../world.ts";
import { type HomeSessions, type Session, SimulatedFailure } from "./database.ts";
import { deliveryOf, isAskedSince, isSame, type SimulatedNotification, type Tables } from "./tables.ts";

export interface DeliveriesParts {
  readonly homes: HomeSessions;
  readonly record: (outcome: DeliveryOutcome) => Promise<Recorded>;
  /** Statements that read queues, when they begin. */
  readonly onRead: (reads: readonly QueueRead[]) => void;
  /** Sweeps of these shards. */
  readonly onHeads: (shards: readonly number[]) => void;
}

/** Pending deliveries in the simulated database, as a worker reads and writes them. */
export class SimulatedDeliveries implements DeliveryStore {
  readonly #parts: DeliveriesParts;

  constructor(parts: DeliveriesParts) {
    this.#parts = parts;
  }

  read(reads: readonly QueueRead[]): Promise<readonly QueuePage[]> {
    return this.#select(reads.map(shardOfPartner), (nowUs) => {
      this.#parts.onRead(reads);
      return reads.map((read) => this.#page(read, nowUs));
    });
  }

  scan(read: Omit<QueueRead, "bytesMax">): Promise<QueuePage> {
    return this.#select([shardOfPartner(read)], (nowUs) => this.#page({ ...read, bytesMax: 1_000_000 }, nowUs));
  }

  heads(shards: readonly number[]): Promise<readonly QueueHead[]> {
    const wanted = new Set(shards);
    this.#parts.onHeads(shards);
    return this.#select(shards, (nowUs) =>
      this.#tables.merchants.filter(({ shard }) => wanted.has(shard)).flatMap((one) => this.#heads(one, nowUs)),
    );
  }

  preceding(deliveries: readonly Delivery[]): Promise<readonly (Precedence | undefined)[]> {
    return this.#select(deliveries.map(shardOfPartner), (nowUs) =>
      deliveries.map(({ id }) => {
        const one = this.#tables.notifications.get(id);
        if (one?.state !== "pending") return undefined;
        const ageMs = nowUs / 1_000 - one.scheduleStartMs;
        if (ageMs >= orderWaitMaxMs) one.mayOvertake = true;
        return { after: one.predecessors.find(({ state }) => state === "pending")?.id, ageMs };
      }),
    );
  }

  record(outcome: DeliveryOutcome): Promise<Recorded> {
    return this.#parts.record(outcome);
  }

  postpone(deliveries: readonly Postponement[]): Promise<void> {
    const { database } = this.#parts.homes;
    return this.#update("put off", deliveries, ({ delayMs, ...read }, one) => ({
      dueAtUs: isAskedSince(one, read) ? one.dueAtUs : database.nowUs() + Math.round(delayMs * 1_000),
    }));
  }

  async park(deliveries: readonly DeliveryKey[]): Promise<number> {
    await this.#update("park", deliveries, () => ({ state: "parked" }));
    return deliveries.length;
  }

  get #tables(): Tables {
    return this.#parts.homes.tables;
  }

  #select<T>(shards: readonly number[], apply: (nowUs: number) => T): Promise<T> {
    const { homes } = this.#parts;
    return homes.about(shards).read(() => apply(homes.database.nowUs()));
  }

  #update<Key extends DeliveryKey>(
    name: string,
    keys: readonly Key[],
    changes: (key: Key, one: SimulatedNotification) => Partial<SimulatedNotification>,
  ): Promise<void> {
    const tables = this.#tables;
    const rowOf = ({ id }: Key) => tables.notifications.get(id);
    return this.#parts.homes.about(keys.map(shardOfPartner)).write({
      name,
      candidates: () =>
        keys
          .filter((key) => isSame(rowOf(key), key))
          .map(({ id }) => id)
          .sort(),
      apply: () => {
        for (const key of keys) {
          const one = rowOf(key);
          if (isSame(one, key)) tables.change(one, changes(key, one));
        }
      },
    });
  }

  #page({ partnerId, queue, after, rowsMax, bytesMax }: QueueRead, nowUs: number): QueuePage {
    const { pending } = this.#tables;
    const rows = pending.queue(partnerId, queue);
    const due: { dueAtUs: number; id: SimulatedNotification["id"]; delivery: Delivery }[] = [];
    let bytes = 0;
    for (let at = after === undefined ? 0 : pending.firstAfter(rows, after); at < rows.length; at += 1) {
      const row = rows[at];
      if (row === undefined) break;
      if (row.dueAtUs > nowUs) return { due, hasMore: false, nextInMs: (row.dueAtUs - nowUs) / 1_000 };
      bytes += row.bytes;
      if (due.length >= rowsMax || (due.length > 0 && bytes > bytesMax)) {
        return { due, hasMore: true, nextInMs: undefined };
      }
      due.push({ dueAtUs: row.dueAtUs, id: row.id, delivery: deliveryOf(row) });
    }
    return { due, hasMore: false, nextInMs: undefined };
  }

  #heads({ id: partnerId }: Merchant, nowUs: number): readonly QueueHead[] {
    return [...this.#tables.pending.queues(partnerId)].flatMap(([queue, [head]]) => {
      if (head === undefined) return [];
      const { id, round, attemptsMade } = head;
      return [{ partnerId, queue, id, round, attemptsMade, dueInMs: (head.dueAtUs - nowUs) / 1_000 }];
    });
  }
}

function shardOfPartner({ partnerId }: Pick<QueueRead, "partnerId">): number {
  return shardOf(partnerId);
}

interface Waiting {
  readonly outcome: DeliveryOutcome;
  readonly resolve: (recorded: Recorded) => void;
  readonly reject: (error: Error) => void;
}

const batchMax = 32;
const againMs = 250;

/** Outcomes share commits. A commit is repeated until its fate is known. */
export class OutcomeCommits {
  readonly #world: World;
  readonly #session: Session;
  readonly #apply: (outcome: DeliveryOutcome) => Recorded;
  #waiting: Waiting[] = [];
  #isCommitting = false;
  /** The outcomes whose fate the worker does not know yet. */
  readonly unwritten = new Set<DeliveryOutcome>();
  /** The chance of an outcome that cannot be stored. */
  unstorableChance = 0;
  /** Each commit takes so much longer. */
  slowMs = 0;

  constructor(world: World, session: Session, apply: (outcome: DeliveryOutcome) => Recorded) {
    this.#world = world;
    this.#session = session;
    this.#apply = apply;
  }

  record(outcome: DeliveryOutcome): Promise<Recorded> {
    return new Promise<Recorded>((resolve, reject) => {
      this.#waiting.push({ outcome, resolve, reject });
      this.unwritten.add(outcome);
      if (!this.#isCommitting) void this.#commitAll();
    });
  }

  async #commitAll(): Promise<void> {
    this.#isCommitting = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, batchMax);
      const answers = await this.#commit(batch.map(({ outcome }) => outcome));
      for (const [at, { outcome, resolve, reject }] of batch.entries()) {
        this.unwritten.delete(outcome);
        const answer = answers[at];
        if (answer === undefined) reject(new SimulatedFailure("no table takes it"));
        else resolve(answer);
      }
    }
    this.#isCommitting = false;
  }

  async #commit(outcomes: readonly DeliveryOutcome[]): Promise<readonly (Recorded | undefined)[]> {
    const { random } = this.#world;
    if (this.slowMs > 0)
      await new Promise<void>((resolve) => void this.#session.loop.timers.after(this.slowMs, resolve));
    const areStorable = outcomes.map(() => this.unstorableChance === 0 || !random.chance(this.unstorableChance));
    for (;;) {
      try {
        return await this.#session.write({
          name: "record",
          candidates: () => outcomes.map(({ id }) => id).sort(),
          apply: () => outcomes.map((outcome, at) => (areStorable[at] ? this.#apply(outcome) : undefined)),
        });
      } catch (error) {
        if (!(error instanceof SimulatedFailure)) throw error;
        await new Promise<void>((resolve) => void this.#session.loop.timers.after(againMs, resolve));
      }
    }
  }
}
