import type { Clock, Timers } from "../../clock.ts";
import { homeOf, type LeaseId, nilId, type PartnerId, shardCount, shardOf } from "../../ids.ts";
import type { LeaseHolder } from "../../leases/lease.ts";

export interface OwnedShard {
  readonly shard: number;
  /** Increases with every change of the owner. */
  readonly epoch: number;
}

export interface WorkerShare {
  readonly leaseId: LeaseId;
  /** One a second since it began. Its age would be that of the database's clock, which may step. */
  readonly beats: number;
  readonly owned: number;
}

export interface ShardMap {
  /** Living delivery workers, by their leases. */
  readonly workers: readonly WorkerShare[];
  /** The shards that the asking lease owns. */
  readonly mine: readonly OwnedShard[];
  readonly free: number;
}

/** The owners of shards. */
export interface ShardStore {
  map(leaseId: LeaseId): Promise<ShardMap>;
  /** Claims up to `count` free shards by compare-and-set, never from a living owner. Rejects if the lease is gone. */
  claim(leaseId: LeaseId, count: number): Promise<readonly OwnedShard[]>;
  /** Releases shards that the lease still owns under their epoch, and notifies the others. */
  release(leaseId: LeaseId, shards: readonly OwnedShard[], over?: "lease"): Promise<void>;
  /** The shards that the lease owns, over its connection, which is answered while the engine's connections are not. */
  owned(leaseId: LeaseId, over: "lease"): Promise<readonly OwnedShard[]>;
}

export interface OwnershipParts {
  readonly store: ShardStore;
  readonly homes: number;
  readonly lease: LeaseHolder;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly timers: Timers;
  /** Shards of one home were claimed: reads the circuits of their partners. They are used once it resolves. */
  readonly prepare: (shards: readonly number[]) => Promise<void>;
  readonly onReady: (shards: readonly number[]) => void;
  /** The shards with a POST in flight, or with an outcome that is not recorded yet. */
  readonly busyShards: (until: "answered" | "recorded") => ReadonlySet<number>;
  /** The worker is not fit any more, or fit again. */
  readonly onFitness?: () => void;
  /** The shards are no longer ours: forgets what is known about them. */
  readonly onGone: (shards: readonly number[]) => void;
  readonly onTrouble: (error: unknown) => void;
}

/** `claimed`: not prepared yet. `draining`: nothing more starts. */
type ShardState = "claimed" | "ready" | "draining";

interface Owned {
  readonly epoch: number;
  readonly sinceMs: number;
  state: ShardState;
}

/** The number of shards that a worker with too many releases per second, so that newcomers do not make them flap. */
const releaseMax = 8;
/** A worker with fewer beats, one a second, may be gone again soon. */
const countedAfterBeats = 10;
/** Most attempts on the wire have ended by then. */
const drainMs = 500;
/** As long as a lease is believed in without an answer: a worker that fails for longer is as good as dead. */
const failingMaxMs = 5_000;
/**
 * A home that takes longer keeps only its own shards waiting. With 3 s, free shards of the others had no owner for as
 * long.
 */
const homeMaxMs = 1_000;

/**
 * The shards that this worker owns. `tick` runs every second and corrects everything by the state of the database: a
 * claim or release whose answer was lost is known at the next one.
 *
 * ```
 * free ──(claim: compare-and-set)──► claimed ──(prepared)──► ready ──(surplus, unfit, a stop)──► draining
 * draining ──(nothing of it is on the wire or unrecorded, or a stop has no time left)──► free
 * any ──(the lease is lost, or the database names another owner)──► gone
 * ```
 *
 * The next owner sends what it finds pending. So a shard is released when its last POST has ended, and not before a
 * moment at which it should have: the database's clock may step.
 *
 * A worker whose beats are answered and whose ticks fail would keep its shards from the others for ever. It releases
 * each shard once nothing of it is on the wire, and counts for no share; its lease stays, with the commands under it:
 *
 * ```
 * fit ──(every tick fails for 5 s, at least two)──► unfit ──(what a tick reads is read)──► fit
 * ```
 */
export class Ownership {
  readonly #parts: OwnershipParts;
  readonly #owned = new Map<number, Owned>();
  #leaseId: LeaseId | undefined;
  #isStable = false;
  #failingSinceMs: number | undefined;
  #isFit = true;
  #isLeaving = false;
  /** Work in homes that has not ended. */
  readonly #working = new Map<number, Promise<void>>();

  constructor(parts: OwnershipParts) {
    this.#parts = parts;
  }

  /** The shards that are ready to send. */
  get ready(): readonly number[] {
    return [...this.#owned].flatMap(([shard, { state }]) => (state === "ready" ? [shard] : []));
  }

  get count(): number {
    return this.#owned.size;
  }

  /** The last tick changed nothing, every shard had an owner, and the lease is still the same. */
  get isStable(): boolean {
    return this.#isStable && this.#parts.lease.current() === this.#leaseId;
  }

  /** Whether it may own shards. */
  get isFit(): boolean {
    return this.#isFit;
  }

  /** The epoch of the partner's shard while attempts for it may start; otherwise undefined. */
  epochOf(partnerId: PartnerId): number | undefined {
    const owned = this.#owned.get(shardOf(partnerId));
    if (owned?.state !== "ready" || this.#leaseId === undefined) return undefined;
    return this.#parts.lease.current() === this.#leaseId ? owned.epoch : undefined;
  }

  /** When the partner's shard was claimed, by the monotonic clock. */
  sinceMs(partnerId: PartnerId): number {
    return this.#owned.get(shardOf(partnerId))?.sinceMs ?? this.#parts.clock.monotonicMs();
  }

  async tick(): Promise<void> {
    const startedMs = this.#parts.clock.monotonicMs();
    try {
      if (this.#isFit) await this.#tick();
      else await this.#try();
      this.#failingSinceMs = undefined;
      this.#setFit(true);
    } catch (error) {
      this.#failingSinceMs ??= startedMs;
      const isAgain = this.#failingSinceMs < startedMs;
      const isForLong = this.#parts.clock.monotonicMs() - this.#failingSinceMs >= failingMaxMs;
      // Without an answer to its beats, the lease says by itself what it may do.
      if (isAgain && isForLong && this.#parts.lease.current() !== undefined) this.#setFit(false);
      if (!this.#isFit) await this.#releaseUnfit();
      throw error;
    }
  }

  #setFit(isFit: boolean): void {
    if (this.#isFit === isFit) return;
    this.#isFit = isFit;
    this.#parts.onFitness?.();
  }

  async #tick(): Promise<void> {
    this.#isStable = false;
    const leaseId = this.#parts.lease.current();
    if (leaseId === undefined) return;
    if (leaseId !== this.#leaseId) this.lose();
    this.#leaseId = leaseId;
    const map = await this.#parts.store.map(leaseId);
    if (this.#leaseId !== leaseId || !map.workers.some((worker) => worker.leaseId === leaseId)) return;
    const ready = this.ready.length;
    this.#correct(map.mine);
    await this.#share(leaseId, map);
    await this.#prepare();
    this.#isStable = map.free === 0 && this.ready.length === ready && this.count === ready;
  }

  /** Asks what a tick asks. */
  async #try(): Promise<void> {
    await this.#parts.store.map(this.#leaseId ?? (nilId as LeaseId));
    await this.#parts.prepare([]);
  }

  /** What is unrecorded cannot be recorded now: it delays no release. */
  async #releaseUnfit(): Promise<void> {
    const { lease, store, busyShards, onTrouble } = this.#parts;
    const leaseId = this.#leaseId;
    if (leaseId === undefined || lease.current() !== leaseId) return;
    const known = [...this.#owned];
    for (const [, owned] of known) owned.state = "draining";
    try {
      // More than is known, if the answer to a claim was lost.
      const owned = await store.owned(leaseId, "lease");
      const busy = busyShards("answered");
      const idle = owned.filter(({ shard }) => !busy.has(shard));
      if (idle.length > 0) await store.release(leaseId, idle, "lease");
      const kept = new Set(owned.filter(({ shard }) => busy.has(shard)).map(({ shard }) => shard));
      this.#gone(known.filter(([shard]) => !kept.has(shard)));
    } catch (error) {
      onTrouble(error);
    }
  }

  /** Forgets shards that are no longer ours, unless they were claimed again since. */
  #gone(shards: readonly (readonly [number, Owned])[]): void {
    const gone = shards.filter(([shard, owned]) => this.#owned.get(shard) === owned).map(([shard]) => shard);
    for (const shard of gone) this.#owned.delete(shard);
    if (gone.length > 0) this.#parts.onGone(gone);
  }

  /** The lease is lost: other workers own everything. */
  lose(): void {
    this.#leaseId = undefined;
    this.#gone([...this.#owned]);
  }

  /**
   * A stop has begun, and nothing more starts: releases the shards of which nothing is on the wire or unrecorded. Their
   * partners do not wait for a receiver that hangs.
   */
  async leave(): Promise<void> {
    if (this.#isLeaving || this.#leaseId === undefined) return;
    this.#isLeaving = true;
    await this.#releaseIdle(this.#leaseId, () => true);
    this.#isLeaving = false;
  }

  /** Releases everything: nothing is on the wire any more. */
  async stop(): Promise<void> {
    if (this.#leaseId === undefined) return;
    await this.#withinHomeMax([...this.#working.values()]);
    await this.#release(this.#leaseId, [...this.#owned]);
  }

  #correct(mine: readonly OwnedShard[]): void {
    const stated = new Map(mine.map(({ shard, epoch }) => [shard, epoch]));
    this.#gone([...this.#owned].filter(([shard, { epoch }]) => stated.get(shard) !== epoch));
    this.#adopt(mine.filter(({ shard }) => !this.#owned.has(shard)));
  }

  #adopt(shards: readonly OwnedShard[]): void {
    const sinceMs = this.#parts.clock.monotonicMs();
    for (const { shard, epoch } of shards) this.#owned.set(shard, { epoch, sinceMs, state: "claimed" });
  }

  async #share(leaseId: LeaseId, { workers, free }: ShardMap): Promise<void> {
    const draining = [...this.#owned.values()].filter(({ state }) => state === "draining").length;
    const kept = this.#owned.size - draining;
    const floor = Math.floor(shardCount / workers.length);
    const missing = workers
      .filter((worker) => worker.leaseId !== leaseId && worker.beats >= countedAfterBeats)
      .reduce((sum, { owned }) => sum + Math.max(0, floor - owned), 0);
    // While another worker lacks shards, nobody keeps more than the floor. The remainder goes to the first that claims
    // it.
    const share = missing > 0 ? floor : Math.ceil(shardCount / workers.length);
    const surplus = Math.min(kept - share, missing - draining, releaseMax);
    if (surplus > 0) {
      this.#drain(surplus);
      await new Promise<void>((resolve) => void this.#parts.timers.after(drainMs, resolve));
    }
    await this.#releaseIdle(leaseId, ({ state }) => state === "draining");
    const lacking = Math.min(share - kept, free);
    if (lacking > 0) this.#adopt(await this.#parts.store.claim(leaseId, lacking));
  }

  /** Those with nothing on the wire first: the partners of the others wait until their last attempt has ended. */
  #drain(count: number): void {
    const busy = this.#parts.busyShards("recorded");
    const idleFirst = this.ready.toSorted((one, other) => Number(busy.has(one)) - Number(busy.has(other)));
    for (const shard of idleFirst.slice(0, count)) {
      const owned = this.#owned.get(shard);
      if (owned !== undefined) owned.state = "draining";
    }
  }

  async #releaseIdle(leaseId: LeaseId, which: (owned: Owned) => boolean): Promise<void> {
    const busy = this.#parts.busyShards("recorded");
    const idle = [...this.#owned].filter(([shard, owned]) => which(owned) && !busy.has(shard));
    // Otherwise it is repeated soon.
    await this.#release(leaseId, idle).catch(this.#parts.onTrouble);
  }

  async #prepare(): Promise<void> {
    const claimed = [...this.#owned].filter(([, { state }]) => state === "claimed");
    await this.#inEachHome(claimed, async (some) => {
      await this.#parts.prepare(some.map(([shard]) => shard));
      const ready = some.filter(([shard, owned]) => this.#owned.get(shard) === owned && owned.state === "claimed");
      for (const [, owned] of ready) owned.state = "ready";
      this.#parts.onReady(ready.map(([shard]) => shard));
    });
  }

  /** A home that is away keeps only its own shards waiting. Rejects if no shard of any home is ready. */
  async #inEachHome(
    shards: readonly (readonly [number, Owned])[],
    work: (some: readonly (readonly [number, Owned])[]) => Promise<void>,
  ): Promise<void> {
    const { homes, onTrouble } = this.#parts;
    const failures: unknown[] = [];
    const works: Promise<void>[] = [];
    for (const [home, some] of Map.groupBy(shards, ([shard]) => homeOf(shard, homes))) {
      if (this.#working.has(home)) continue;
      const ended = work(some)
        .catch((error: unknown) => void failures.push(error))
        .finally(() => this.#working.delete(home));
      this.#working.set(home, ended);
      works.push(ended);
    }
    await this.#withinHomeMax(works);
    if (failures.length === 0) return;
    if (this.ready.length === 0) throw failures[0];
    for (const error of failures) onTrouble(error);
  }

  async #withinHomeMax(works: readonly Promise<void>[]): Promise<void> {
    if (this.#parts.homes === 1) return void (await Promise.all(works));
    const { promise: timedOut, resolve } = Promise.withResolvers<void>();
    const cancel = this.#parts.timers.after(homeMaxMs, resolve);
    await Promise.race([Promise.all(works), timedOut]);
    cancel();
  }

  async #release(leaseId: LeaseId, shards: readonly (readonly [number, Owned])[]): Promise<void> {
    if (shards.length === 0) return;
    for (const [, owned] of shards) owned.state = "draining";
    const released = shards.map(([shard, { epoch }]) => ({ shard, epoch }));
    await this.#parts.store.release(leaseId, released);
    this.#gone(shards);
  }
}
