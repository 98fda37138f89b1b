import { setImmediate } from "node:timers/promises";
import type { Delivery } from "../packages/server/src/delivery/delivery.ts";
import { Backpressure } from "../packages/server/src/delivery/limits/backpressure.ts";
import { Circuits } from "../packages/server/src/delivery/limits/circuits.ts";
import { RateLimits } from "../packages/server/src/delivery/limits/rate.ts";
import { Queue } from "../packages/server/src/delivery/queues/queue.ts";
import { Queues } from "../packages/server/src/delivery/queues/queues.ts";
import { BlockedQueues } from "../packages/server/src/delivery/worker/blocked-queues.ts";
import { Ownership } from "../packages/server/src/delivery/worker/ownership.ts";
import { Sendings } from "../packages/server/src/delivery/worker/sending.ts";
import { DeliveryWorker } from "../packages/server/src/delivery/worker/worker.ts";
import type { LeaseId } from "../packages/server/src/ids.ts";
import { Lease } from "../packages/server/src/leases/lease.ts";
import type { FaultsOf } from "./context.ts";
import { SimulatedDeliveries } from "./database/deliveries.ts";
import { SimulatedLeases, SimulatedShards } from "./database/shards.ts";
import { Tables } from "./database/tables.ts";
import { SimulatedAttempts } from "./service/attempt.ts";
import { Instance } from "./service/instance.ts";

/** Something that is wrong on purpose, and that the simulation must find. */
export interface Mutant {
  readonly name: string;
  /** One with which it is found soon. */
  readonly seed: number;
  readonly faults?: FaultsOf;
  /** Breaks the code, or a part of the simulated world. @returns what makes it whole again */
  readonly sabotage: () => () => void;
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

export const mutants: readonly Mutant[] = [
  {
    // NOT EXISTS (a living lease): after a wait for the row's lock, the other table is seen as it was before.
    name: "a take without compare-and-set",
    seed: 2,
    faults: "crashes",
    sabotage: wrong(SimulatedShards, "claim", (_, [leaseId, count], shards) => {
      let living: ReadonlySet<LeaseId> | undefined;
      return shards.takeOf(leaseId, count, ({ leaseId: owner }) => {
        living ??= new Set(shards.tables.leases.keys());
        return owner === null || !living.has(owner);
      });
    }),
  },
  {
    // Deletes what was found dead, whatever its beat is by now, and by the database's clock.
    name: "reaping by time alone",
    seed: 41,
    sabotage: wrong(SimulatedLeases, "beat", async (original, args, leases) => {
      const beats = await original(...args);
      const nowUs = leases.session.database.nowUs();
      const beatenUs = (id: LeaseId) => leases.tables.leases.get(id)?.beatenUs ?? nowUs;
      const stale = (beats ?? []).map(({ id }) => id).filter((id) => nowUs - beatenUs(id) > 6_000_000);
      await leases.delete(stale, () => true);
      return beats;
    }),
  },
  {
    name: "a stale row of a read is kept",
    seed: 48,
    sabotage: wrong(Queue, "readEnds", (original, [page, nowMs]) => original(page, nowMs, () => false)),
  },
  {
    name: "a lost hint is never swept",
    seed: 45,
    sabotage: wrong(SimulatedDeliveries, "heads", async () => []),
  },
  {
    name: "the queue of an endpoint that accepts nothing is not scanned",
    seed: 13,
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
    seed: 45,
    sabotage: wrong(Queues, "forgetReady", (original, [queue, which]) => {
      if (which !== undefined) original(queue, which);
    }),
  },
  {
    name: "an outcome has no guard",
    seed: 43,
    sabotage: wrong(Tables, "carryOut", (original, [outcome, nowUs], tables) => {
      const one = tables.notifications.get(outcome.id);
      if (one === undefined || one.state === "accepted") return "missed";
      const { round, attemptsMade } = one;
      return original({ ...outcome, round, attemptsMade }, nowUs);
    }),
  },
  {
    name: "a lease is believed in whatever the clock says",
    seed: 45,
    sabotage: believesLonger(Number.POSITIVE_INFINITY),
  },
  {
    name: "a lease is believed in for 6 s",
    seed: 8,
    sabotage: believesLonger(1_000),
  },
  {
    name: "the buckets of a lost shard are kept",
    seed: 45,
    sabotage: wrong(RateLimits, "forget", () => undefined),
  },
  {
    name: "a stop does not wait for unrecorded outcomes",
    seed: 50,
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
    seed: 78,
    sabotage: () => {
      const fit = Object.getOwnPropertyDescriptor(Ownership.prototype, "isFit");
      Object.defineProperty(Ownership.prototype, "isFit", { get: () => true, configurable: true });
      return () => void Object.defineProperty(Ownership.prototype, "isFit", fit as PropertyDescriptor);
    },
  },
  {
    name: "a worker that is not fit keeps its shards",
    seed: 78,
    sabotage: wrong(SimulatedShards, "release", async (original, args) =>
      args[2] === "lease" ? undefined : original(...args),
    ),
  },
  {
    name: "a shard is released while something of it is on the wire",
    seed: 63,
    sabotage: wrong(Sendings, "busyShards", () => new Set()),
  },
  {
    name: "a stop whose time is over aborts nothing",
    seed: 113,
    sabotage: wrong(SimulatedAttempts, "abort", () => undefined),
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
    seed: 83,
    sabotage: wrong(DeliveryWorker, "offer", (original, [delivery]) => original(delivery, Number.POSITIVE_INFINITY)),
  },
  {
    name: "a late outcome of a lost ownership ends its successor",
    seed: 45,
    faults: "leases",
    sabotage: wrong(Queues, "release", (original, [delivery, againInMs], queues) => {
      original(queues.find(delivery.id) ?? delivery, againInMs);
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
    sabotage: wrong(Instance, "passOn", (original, args, instance) => {
      if (instance.worker.owns(args[0].partnerId)) instance.offer(...args);
      else original(...args);
    }),
  },
  {
    name: "a notification that was sent now loses its step of the schedule",
    seed: 65,
    sabotage: wrong(Tables, "carryOut", (original, [outcome, nowUs], tables) => {
      const recorded = original(outcome, nowUs);
      const one = tables.notifications.get(outcome.id);
      if (one !== undefined) one.asked = 0;
      return recorded;
    }),
  },
  {
    name: "what follows waits for nothing",
    seed: 1,
    sabotage: wrong(SimulatedDeliveries, "preceding", async (_, [asked]) =>
      asked.map(() => ({ after: undefined, ageMs: 0 })),
    ),
  },
];

/** Believes in the last lease for longer than it is held for certain. */
function believesLonger(byMs: number): Mutant["sabotage"] {
  type Last = { readonly id: LeaseId; readonly untilMs: number; readonly untilWallMs: number };
  const lasts = new WeakMap<Instance, Last>();
  return wrong(Instance, "currentLease", (original, _, instance) => {
    const id = original();
    const { monotonicMs, nowMs } = instance.loop.clock;
    const leftMs = instance.lease.remainingMs() + byMs;
    if (id !== undefined) lasts.set(instance, { id, untilMs: monotonicMs() + leftMs, untilWallMs: nowMs() + leftMs });
    const last = lasts.get(instance);
    return last !== undefined && last.untilMs > monotonicMs() && last.untilWallMs > nowMs() ? last.id : undefined;
  });
}
