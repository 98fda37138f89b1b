import { type LeaseId, newId, type PartnerId, shardCount } from "../../ids.ts";
import type { Partner } from "../../partners/partner.ts";
import type { AttemptResult } from "../attempt/attempt.ts";
import { failedAttempt } from "../delivery.fixture.ts";
import type { Delivery } from "../delivery.ts";
import { type LoadedCircuit, originCircuit } from "../limits/circuits.ts";
import { Pending, Time } from "../pending.fixture.ts";
import type { DeliveryStore } from "../store.ts";
import type { OwnedShard, ShardMap, WorkerShare } from "./ownership.ts";
import { DeliveryWorker } from "./worker.ts";

export const partnerId = newId<"partner">();
export const url = "https://partner.example/ipn";
export const origin = originCircuit(url);
const leaseId = newId<"lease">() as LeaseId;
export const open: LoadedCircuit = {
  partnerId,
  queue: origin,
  circuit: { state: "open", failures: 5, probes: 0, probeInMs: 60_000, lastReason: "timeout" },
  controlNo: 0,
};
const internalAttempt = { ...failedAttempt, url: "not a URL", httpStatus: null, reason: "internal" } as const;
export const next = { kind: "retry", delayMs: 5_000 } as const;

/** A worker that owns every shard from its first tick on. */
export async function workerOver(
  more: Partial<DeliveryStore> = {},
  {
    homes = 1,
    slotsMax = 8,
    maxPerSecond = null as number | null,
    bytesInFlightMax = 1e6,
    callBackUrlByCommand = {},
  } = {},
) {
  const time = new Time();
  const pending = new Pending();
  const begun: Delivery[] = [];
  const troubles: string[] = [];
  /** The number begun by the end of each turn of the event loop that left some to the next. */
  const begunByTurn: number[] = [];
  const fitness: boolean[] = [];
  const faults: Delivery[] = [];
  /** How many were parked without an attempt, each time. */
  const overdue: number[] = [];
  /** The shards that it owned when it aborted what was on the wire. */
  const aborts: number[] = [];
  const settings = {
    maxInFlight: slotsMax / 4,
    maxPerSecond,
    callBackUrl: url,
    callBackUrlByCommand,
    retry: [5, 60],
  };
  const partner = { id: partnerId, state: "active", settings, pauses: [] } as unknown as Partner;
  const circuits = {
    load: async (_: readonly number[]): Promise<readonly LoadedCircuit[]> => [],
    loadChangedByHand: async (_: readonly number[]): Promise<readonly LoadedCircuit[]> => [],
  };
  const lease = { id: leaseId as LeaseId | undefined };
  /** The time for which the egress proxy fails. */
  const egress = { waitMs: 0 };
  /** The states of partners that are not active. */
  const others = new Map<PartnerId, "paused" | "unknown">();
  const cached = (id: PartnerId): Partner | undefined => {
    const state = others.get(id);
    return state === "unknown" ? undefined : ({ ...partner, id, ...(state && { state }) } as Partner);
  };
  /** Of each attempt that was begun: whether its first byte may leave now, and its answer. */
  const mayWrite: (() => boolean)[] = [];
  const answers: ((attempted: AttemptResult | { readonly postponeMs: number }) => void)[] = [];
  /** The shards of this worker, and the shares of the others. */
  const shards = {
    mine: [] as readonly OwnedShard[],
    others: [] as readonly WorkerShare[],
    epoch: 0,
    isFailing: false,
    releasedOverLease: [] as number[],
  };
  const release = (released: readonly OwnedShard[]) => {
    const gone = new Set(released.map(({ shard }) => shard));
    shards.mine = shards.mine.filter(({ shard }) => !gone.has(shard));
  };
  const worker = new DeliveryWorker({
    store: {
      read: (reads) => pending.read(reads),
      heads: (shards) => pending.heads(shards),
      preceding: async () => [],
      record: async () => "applied",
      postpone: async () => undefined,
      scan: (read) => pending.scan(read),
      park: async (parked) => parked.length,
      ...more,
    },
    shards: {
      map: async (): Promise<ShardMap> => {
        if (shards.isFailing) throw new Error("too many clients already");
        return {
          workers: [{ leaseId: lease.id ?? leaseId, beats: 60, owned: shards.mine.length }, ...shards.others],
          mine: shards.mine,
          free: shardCount - shards.mine.length,
        };
      },
      claim: async () => {
        shards.epoch += 1;
        const owned = new Map(shards.mine.map((one) => [one.shard, one]));
        const { epoch } = shards;
        shards.mine = Array.from({ length: shardCount }, (_, shard) => owned.get(shard) ?? { shard, epoch });
        return shards.mine.filter(({ shard }) => !owned.has(shard));
      },
      release: async (_, released, over) => {
        if (over === "lease") shards.releasedOverLease.push(...released.map(({ shard }) => shard));
        release(released);
      },
      owned: async () => shards.mine,
    },
    circuits: {
      load: (shards) => circuits.load(shards),
      loadChangedByHand: (shards) => circuits.loadChangedByHand(shards),
    },
    homes,
    lease: { current: () => lease.id, remainingMs: () => 5_000 },
    partners: { cached },
    attempt: async (delivery, _, options) => {
      if (delivery.transactionId !== null) throw new Error("a bug");
      if (delivery.callBackUrl === "not a URL") return { attempt: internalAttempt, next };
      begun.push(delivery);
      mayWrite.push(options.mayWrite);
      return new Promise((resolve) => {
        answers.push(resolve);
      });
    },
    clock: time.clock,
    timers: time.timers,
    inNextTurn: (work) => {
      begunByTurn.push(begun.length);
      time.timers.after(0, work);
    },
    random: () => 0.5,
    slotsMax,
    bytesInFlightMax,
    egressWaitMs: () => egress.waitMs,
    abort: () => void aborts.push(shards.mine.length),
    onFitness: () => void fitness.push(worker.isFit),
    onFault: (delivery) => void faults.push(delivery),
    onOverdue: (_, parked) => void overdue.push(parked),
    onTrouble: (message) => void troubles.push(message),
  });
  worker.start();
  await time.pass(100);
  return {
    time,
    pending,
    worker,
    begun,
    mayWrite,
    troubles,
    begunByTurn,
    fitness,
    faults,
    overdue,
    aborts,
    circuits,
    lease,
    egress,
    others,
    shards,
    answers,
    /** Answers the last one. */
    answer: (one: Parameters<(typeof answers)[number]>[0]) => answers.at(-1)?.(one),
  };
}
