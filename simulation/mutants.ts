import { setImmediate } from "node:timers/promises";
import { Backpressure } from "../packages/server/src/delivery/backpressure.ts";
import { BlockedQueues } from "../packages/server/src/delivery/blocked-queues.ts";
import { Circuits } from "../packages/server/src/delivery/circuit.ts";
import type { Delivery } from "../packages/server/src/delivery/delivery.ts";
import { type OwnedShard, Ownership } from "../packages/server/src/delivery/ownership.ts";
import { Queue } from "../packages/server/src/delivery/queue.ts";
import { Queues } from "../packages/server/src/delivery/queues.ts";
import { RateLimits } from "../packages/server/src/delivery/rate.ts";
import type { QueuePage } from "../packages/server/src/delivery/store.ts";
import { DeliveryWorker } from "../packages/server/src/delivery/worker.ts";
import type { LeaseId } from "../packages/server/src/ids.ts";
import { Lease, type LeaseBeat, type LeaseKind } from "../packages/server/src/leases/lease.ts";
import { faithful, type Variation } from "./context.ts";
import { carryOut } from "./database/deliveries.ts";
import { SimulatedLeases, SimulatedShards } from "./database/shards.ts";

/** Something that is wrong on purpose, and that the simulation must find. */
export interface Mutant {
  readonly name: string;
  /** One with which it is found soon. */
  readonly seed: number;
  readonly variation?: Partial<Variation>;
  /** Breaks the code itself. @returns what makes it whole again */
  readonly sabotage?: () => () => void;
}

/** NOT EXISTS (a living lease): after a wait for the row's lock, the other table is seen as it was before. */
class TakesByNotExists extends SimulatedShards {
  override claim(leaseId: LeaseId, count: number): Promise<readonly OwnedShard[]> {
    let living: ReadonlySet<LeaseId> | undefined;
    return this.takeOf(leaseId, count, ({ leaseId: owner }) => {
      living ??= new Set(this.tables.leases.keys());
      return owner === null || !living.has(owner);
    });
  }
}

/** Deletes what was found dead, whatever its beat is by now, and by the database's clock. */
class ReapsByTime extends SimulatedLeases {
  override async beat(id: LeaseId, kind: LeaseKind): Promise<readonly LeaseBeat[] | undefined> {
    const beats = (await super.beat(id, kind)) ?? [];
    const nowUs = this.database.nowUs();
    const stale = beats.filter(({ id }) => nowUs - (this.tables.leases.get(id)?.beatenUs ?? nowUs) > 6_000_000);
    await this.delete(
      stale.map(({ id }) => id),
      () => true,
    );
    return beats.length === 0 ? undefined : beats;
  }
}

class SurrendersNothing extends SimulatedShards {
  override async surrender(): Promise<void> {
    return undefined;
  }
}

function patch<T extends object, Name extends keyof T>(on: T, name: Name, method: (original: T[Name]) => T[Name]) {
  const original = on[name];
  on[name] = method(original);
  return () => {
    on[name] = original;
  };
}

export const mutants: readonly Mutant[] = [
  { name: "a take without compare-and-set", seed: 2, variation: { Shards: TakesByNotExists, faults: "crashes" } },
  { name: "reaping by time alone", seed: 2, variation: { Leases: ReapsByTime } },
  {
    name: "a stale row of a read is kept",
    seed: 3,
    sabotage: () =>
      patch(
        Queue.prototype,
        "readEnds",
        (original) =>
          function (this: Queue, page, nowMs) {
            return original.call(this, page, nowMs, () => false);
          },
      ),
  },
  {
    name: "a lost hint is never swept",
    seed: 1,
    variation: {
      deliveries: (store) =>
        new Proxy(store, { get: (of, name) => (name === "heads" ? async () => [] : bound(of, name)) }),
    },
  },
  {
    name: "the queue of a shut endpoint is not scanned",
    seed: 9,
    sabotage: () => patch(BlockedQueues.prototype, "scan", () => async () => undefined),
  },
  {
    name: "the endpoint of its queue decides about a delivery, and not its own URL",
    seed: 1,
    sabotage: () =>
      patch(
        Circuits.prototype,
        "gateOf",
        () =>
          function (this: Circuits, delivery, urls) {
            const { partnerId, queue = "" } = delivery as Partial<Delivery> & typeof delivery;
            return this.gateOfQueue({ partnerId, queue }, urls);
          },
      ),
  },
  {
    name: "a bucket is full after a take",
    seed: 1,
    sabotage: () =>
      patch(
        RateLimits.prototype,
        "acquire",
        (original) =>
          function (this: RateLimits, partnerId, perSecond) {
            return original.call(this, partnerId, perSecond, -1e9);
          },
      ),
  },
  {
    name: "deliveries of a paused partner stay in memory",
    seed: 1,
    sabotage: () =>
      patch(
        Queues.prototype,
        "forgetReady",
        (original) =>
          function (this: Queues, queue, which) {
            if (which !== undefined) original.call(this, queue, which);
          },
      ),
  },
  {
    name: "an outcome has no guard",
    seed: 1,
    variation: {
      carryOut: (outcome, tables, database) => {
        const one = tables.notifications.get(outcome.id);
        if (one === undefined || one.state === "accepted") return "missed";
        const { round, attemptsMade } = one;
        return carryOut({ ...outcome, round, attemptsMade }, tables, database);
      },
    },
  },
  {
    name: "a lease is believed in without a look at the clock",
    seed: 2,
    variation: { holder: (lease) => believing(lease) },
  },
  {
    name: "a lease is believed in for 6 s",
    seed: 3,
    variation: { holder: (lease, loop) => believingLonger(lease, loop, 1_000) },
  },
  {
    name: "the buckets of a lost shard are kept",
    seed: 1,
    sabotage: () => patch(RateLimits.prototype, "forget", () => () => undefined),
  },
  {
    name: "a stop does not wait for unrecorded outcomes",
    seed: 1,
    sabotage: () =>
      patch(
        DeliveryWorker.prototype,
        "stop",
        (original) =>
          async function (this: DeliveryWorker) {
            // Each turn of the event loop is a step.
            for (let turns = 0; this.status.slots > 0 && turns < 5_000; turns += 1) await setImmediate();
            return original.call(this, 0);
          },
      ),
  },
  {
    name: "a sweep leaves a shard out",
    seed: 1,
    sabotage: () =>
      patch(
        Queues.prototype,
        "sweep",
        (original) =>
          function (this: Queues, shards, ...others) {
            return original.call(this, shards.slice(1), ...others);
          },
      ),
  },
  {
    name: "a worker that can only renew its lease keeps its share",
    seed: 1,
    sabotage: () => {
      const fit = Object.getOwnPropertyDescriptor(Ownership.prototype, "isFit");
      Object.defineProperty(Ownership.prototype, "isFit", { get: () => true, configurable: true });
      return () => void Object.defineProperty(Ownership.prototype, "isFit", fit as PropertyDescriptor);
    },
  },
  {
    name: "a worker that is not fit keeps its shards",
    seed: 1,
    variation: { Shards: SurrendersNothing },
  },
  {
    name: "a worker that is not fit gives up its lease",
    seed: 1,
    sabotage: () =>
      patch(
        Lease.prototype,
        "kindChanged",
        () =>
          function (this: Lease) {
            this.stop()
              .then(() => this.start())
              .catch(() => undefined);
          },
      ),
  },
  {
    name: "two probes at once",
    seed: 1,
    sabotage: () => patch(Circuits.prototype, "probeBegins", () => () => undefined),
  },
  {
    name: "a hint that is not kept asks for nothing",
    seed: 1,
    sabotage: () => patch(Queue.prototype, "wake", () => () => undefined),
  },
  {
    name: "a delivery that is offered late is put into its queue",
    seed: 11,
    sabotage: () =>
      patch(
        DeliveryWorker.prototype,
        "offer",
        (original) =>
          function (this: DeliveryWorker, delivery) {
            original.call(this, delivery, Number.POSITIVE_INFINITY);
          },
      ),
  },
  {
    name: "a late outcome of a lost ownership ends its successor",
    seed: 8,
    variation: { faults: "leases" },
    sabotage: () =>
      patch(
        Queues.prototype,
        "release",
        (original) =>
          function (this: Queues, delivery, againInMs) {
            const inHand = this.queuesOf(delivery.partnerId).flatMap(({ notReady }) => notReady);
            original.call(this, inHand.find(({ id }) => id === delivery.id) ?? delivery, againInMs);
          },
      ),
  },
  {
    name: "a turn of intake is never granted",
    seed: 1,
    sabotage: () =>
      patch(
        Backpressure.prototype,
        "waitForTurn",
        (original) =>
          function (this: Backpressure) {
            return original.call(this) && new Promise<void>(() => undefined);
          },
      ),
  },
  {
    name: "an error of delivery reaches the ledger",
    seed: 1,
    variation: {
      notifier: (instance) => ({
        offer: (delivery, begunMs) =>
          (instance.worker.owns(delivery.partnerId) ? instance : instance.hints).offer(delivery, begunMs),
      }),
    },
  },
  {
    name: "a notification that was sent now loses its step of the schedule",
    seed: 1,
    variation: {
      deliveries: (store) =>
        new Proxy(store, {
          get: (of, name) =>
            name === "read"
              ? async (reads: Parameters<typeof store.read>[0]) => (await store.read(reads)).map(withoutAsked)
              : bound(of, name),
        }),
    },
  },
  {
    name: "what follows waits for nothing",
    seed: 1,
    variation: {
      deliveries: (store) =>
        new Proxy(store, {
          get: (of, name) =>
            name === "preceding"
              ? async (asked: []) => asked.map(() => ({ after: undefined, ageMs: 0 }))
              : bound(of, name),
        }),
    },
  },
];

function withoutAsked(page: QueuePage): QueuePage {
  const due = page.due.map((row) => ({ ...row, delivery: row.delivery && { ...row.delivery, asked: 0 } }));
  return { ...page, due };
}

function bound(of: object, name: string | symbol): unknown {
  const value: unknown = Reflect.get(of, name);
  return typeof value === "function" ? value.bind(of) : value;
}

/** Keeps using the last lease. */
function believing(lease: Parameters<Variation["holder"]>[0]): ReturnType<Variation["holder"]> {
  let last: LeaseId | undefined;
  return {
    current: () => {
      last = lease.current() ?? last;
      return last;
    },
    remainingMs: () => Math.max(1, lease.remainingMs()),
  };
}

/** Believes in the last lease for longer than it is held for certain. */
function believingLonger(
  lease: Parameters<Variation["holder"]>[0],
  { clock }: Parameters<Variation["holder"]>[1],
  byMs: number,
): ReturnType<Variation["holder"]> {
  let last: { readonly id: LeaseId; readonly untilMs: number; readonly untilWallMs: number } | undefined;
  const remainingMs = () => {
    const [leftMs, id] = [lease.remainingMs(), lease.current()];
    const [nowMs, wallMs] = [clock.monotonicMs(), clock.nowMs()];
    if (id !== undefined) last = { id, untilMs: nowMs + leftMs + byMs, untilWallMs: wallMs + leftMs + byMs };
    return last === undefined ? 0 : Math.max(0, Math.min(last.untilMs - nowMs, last.untilWallMs - wallMs));
  };
  return { remainingMs, current: () => (remainingMs() > 0 ? last?.id : undefined) };
}

export function variationOf({ variation }: Mutant): Variation {
  return { ...faithful, ...variation };
}
