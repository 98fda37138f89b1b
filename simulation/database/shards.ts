import type { OwnedShard, ShardMap, ShardStore } from "../../packages/server/src/delivery/ownership.ts";
import type { LeaseId } from "../../packages/server/src/ids.ts";
import type { EventLoop } from "../service/event-loop.ts";
import { type SimulatedDatabase, SimulatedFailure } from "./database.ts";
import type { Line } from "./line.ts";
import type { ShardRow, Tables } from "./tables.ts";

/** Called when a release begins, and when it is committed. */
export interface ReleaseHooks {
  readonly onReleases: (shards: readonly OwnedShard[]) => void;
  readonly onGiven: (shards: readonly number[]) => void;
}

/** `shards` in the simulated database. */
export class SimulatedShards implements ShardStore {
  readonly #database: SimulatedDatabase;
  protected readonly tables: Tables;
  readonly #loop: EventLoop;
  readonly #line: Line;
  readonly #beatLine: Line;
  readonly #hooks: ReleaseHooks;

  constructor(
    database: SimulatedDatabase,
    tables: Tables,
    loop: EventLoop,
    line: Line,
    beatLine: Line,
    hooks: ReleaseHooks,
  ) {
    this.#database = database;
    this.tables = tables;
    this.#loop = loop;
    this.#line = line;
    this.#beatLine = beatLine;
    this.#hooks = hooks;
  }

  map(leaseId: LeaseId): Promise<ShardMap> {
    return this.#database.read(this.#loop, this.#line, {
      name: "map",
      apply: () => {
        const owned = new Map<LeaseId | null, number>();
        for (const { leaseId: owner } of this.tables.shards) owned.set(owner, (owned.get(owner) ?? 0) + 1);
        const nowUs = this.#database.nowUs();
        const workers = [...this.tables.leases.values()]
          .filter(({ kind }) => kind === "delivery")
          .map(({ id, sinceUs }) => ({ leaseId: id, ageMs: (nowUs - sinceUs) / 1_000, owned: owned.get(id) ?? 0 }));
        return { workers, mine: this.tables.shardsOf(leaseId).map(copy), free: owned.get(null) ?? 0 };
      },
    });
  }

  claim(leaseId: LeaseId, count: number): Promise<readonly OwnedShard[]> {
    return this.takeOf(leaseId, count, ({ leaseId: owner }) => owner === null);
  }

  release(leaseId: LeaseId, shards: readonly OwnedShard[]): Promise<void> {
    this.#hooks.onReleases(shards);
    return this.#release(this.#line, leaseId, shards);
  }

  held(leaseId: LeaseId): Promise<readonly OwnedShard[]> {
    const apply = () => this.tables.shardsOf(leaseId).map(copy);
    return this.#database.read(this.#loop, this.#beatLine, { name: "held", apply });
  }

  surrender(leaseId: LeaseId, shards: readonly OwnedShard[]): Promise<void> {
    return this.#release(this.#beatLine, leaseId, shards);
  }

  #release(line: Line, leaseId: LeaseId, shards: readonly OwnedShard[]): Promise<void> {
    const isStill = ({ shard, epoch }: OwnedShard) =>
      this.tables.shards[shard]?.leaseId === leaseId && this.tables.shards[shard]?.epoch === epoch;
    return this.#database.write(this.#loop, line, {
      name: "give",
      candidates: () => shards.filter(isStill).map(({ shard }) => `shard ${shard}`),
      apply: () => {
        this.#hooks.onGiven(shards.filter(isStill).map(({ shard }) => shard));
        for (const { shard } of shards.filter(isStill)) {
          const row = this.tables.shards[shard];
          if (row !== undefined) this.tables.own(row, null);
        }
      },
    });
  }

  /** @param mayTake is asked of the snapshot, and again of the locked row */
  protected takeOf(
    leaseId: LeaseId,
    count: number,
    mayTake: (row: ShardRow) => boolean,
  ): Promise<readonly OwnedShard[]> {
    let candidates: readonly ShardRow[] = [];
    return this.#database.write(this.#loop, this.#line, {
      name: "take",
      candidates: () => {
        candidates = this.tables.shards.filter(mayTake).slice(0, count);
        return candidates.map(({ shard }) => `shard ${shard}`);
      },
      // The foreign key: a lease that is being deleted is waited for.
      more: () => [`key ${leaseId}`],
      apply: () => {
        if (!this.tables.leases.has(leaseId)) throw new SimulatedFailure("the lease is gone");
        const taken = candidates.filter(mayTake);
        for (const row of taken) {
          this.tables.own(row, leaseId);
          row.epoch += 1;
        }
        return taken.map(copy);
      },
    });
  }
}

function copy({ shard, epoch }: ShardRow): OwnedShard {
  return { shard, epoch };
}
