import { setImmediate } from "node:timers/promises";
import { Backpressure } from "../packages/server/src/delivery/backpressure.ts";
import { BlockedQueues } from "../packages/server/src/delivery/blocked-queues.ts";
import { Circuits } from "../packages/server/src/delivery/circuit.ts";
import type { Delivery } from "../packages/server/src/delivery/delivery.ts";
import { type OwnedShard, Ownership } from "../packages/server/src/delivery/ownership.ts";
import { Queue } from "../packages/server/src/delivery/queue.ts";
import { Queues } from "../packages/server/src/delivery/queues.ts";
import { RateLimits } from "../packages/server/src/delivery/rate.ts";
import type { DeliveryStore, QueuePage } from "../packages/server/src/delivery/store.ts";
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
    const nowUs = this.session.database.nowUs();
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

type Arguments<F> = F extends (...args: infer A) => unknown ? A : never;
type Result<F> = F extends (...args: never[]) => infer R ? R : never;

/** Replaces a method by one that gets the original. @returns the sabotage */
function wrong<T extends object, Name extends keyof T>(
  { prototype }: { readonly prototype: T },
  name: Name,
  method: (original: (...args: Arguments<T[Name]>) => Result<T[Name]>, args: Arguments<T[Name]>, self: T) => unknown,
): () => () => void {
  return () => {
    const original = prototype[name];
    const replaced = function (this: T, ...args: Arguments<T[Name]>) {
      return method((...others) => Reflect.apply(original as () => Result<T[Name]>, this, others), args, this);
    };
    prototype[name] = replaced as T[Name];
    return () => {
      prototype[name] = original;
    };
  };
}

/** The store of deliveries with one statement that answers wrongly. */
function answering(name: keyof DeliveryStore, answer: (store: DeliveryStore) => unknown): Partial<Variation> {
  const deliveries: Variation["deliveries"] = (store) =>
    new Proxy(store, { get: (of, property) => (property === name ? answer(of) : bound(of, property)) });
  return { deliveries };
}

export const mutants: readonly Mutant[] = [
  { name: "a take without compare-and-set", seed: 2, variation: { Shards: TakesByNotExists, faults: "crashes" } },
  { name: "reaping by time alone", seed: 2, variation: { Leases: ReapsByTime } },
  {
    name: "a stale row of a read is kept",
    seed: 3,
    sabotage: wrong(Queue, "readEnds", (original, [page, nowMs]) => original(page, nowMs, () => false)),
  },
  {
    name: "a lost hint is never swept",
    seed: 1,
    variation: answering("heads", () => async () => []),
  },
  {
    name: "the queue of an endpoint that accepts nothing is not scanned",
    seed: 9,
    sabotage: wrong(BlockedQueues, "scan", async () => undefined),
  },
  {
    name: "the endpoint of its queue decides about a delivery, and not its own URL",
    seed: 1,
    sabotage: wrong(Circuits, "gateOf", (_, [delivery, urls], circuits) => {
      const { partnerId, queue = "" } = delivery as Partial<Delivery> & typeof delivery;
      return circuits.gateOfQueue({ partnerId, queue }, urls);
    }),
  },
  {
    name: "a bucket is full after a take",
    seed: 1,
    sabotage: wrong(RateLimits, "acquire", (original, [partnerId, perSecond]) => original(partnerId, perSecond, -1e9)),
  },
  {
    name: "deliveries of a paused partner stay in memory",
    seed: 1,
    sabotage: wrong(Queues, "forgetReady", (original, [queue, which]) => {
      if (which !== undefined) original(queue, which);
    }),
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
    name: "a lease is believed in whatever the clock says",
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
    sabotage: wrong(RateLimits, "forget", () => undefined),
  },
  {
    name: "a stop does not wait for unrecorded outcomes",
    seed: 1,
    sabotage: wrong(DeliveryWorker, "stop", async (original, _, worker) => {
      // Each turn of the event loop is a step.
      for (let turns = 0; worker.status.slots > 0 && turns < 5_000; turns += 1) await setImmediate();
      return original(0);
    }),
  },
  {
    name: "a sweep leaves a shard out",
    seed: 1,
    sabotage: wrong(Queues, "sweep", (original, [shards, ...others]) => original(shards.slice(1), ...others)),
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
    sabotage: wrong(Lease, "kindChanged", (_, __, lease) => {
      lease
        .stop()
        .then(() => lease.start())
        .catch(() => undefined);
    }),
  },
  {
    name: "two probes at once",
    seed: 1,
    sabotage: wrong(Circuits, "probeBegins", () => undefined),
  },
  {
    name: "a hint that is not kept asks for nothing",
    seed: 1,
    sabotage: wrong(Queue, "wake", () => undefined),
  },
  {
    name: "a delivery that is offered late is put into its queue",
    seed: 11,
    sabotage: wrong(DeliveryWorker, "offer", (original, [delivery]) => original(delivery, Number.POSITIVE_INFINITY)),
  },
  {
    name: "a late outcome of a lost ownership ends its successor",
    seed: 8,
    variation: { faults: "leases" },
    sabotage: wrong(Queues, "release", (original, [delivery, againInMs], queues) => {
      const inHand = queues.queuesOf(delivery.partnerId).flatMap(({ notReady }) => notReady);
      original(inHand.find(({ id }) => id === delivery.id) ?? delivery, againInMs);
    }),
  },
  {
    name: "a turn of intake is never granted",
    seed: 1,
    sabotage: wrong(Backpressure, "waitForTurn", (original) => original() && new Promise<void>(() => undefined)),
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
    variation: answering("read", (store) => async (reads: Parameters<typeof store.read>[0]) => {
      return (await store.read(reads)).map(withoutAsked);
    }),
  },
  {
    name: "what follows waits for nothing",
    seed: 1,
    variation: answering("preceding", () => async (asked: []) => asked.map(() => ({ after: undefined, ageMs: 0 }))),
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
