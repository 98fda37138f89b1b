import type { OwnedShard, ShardMap, ShardStore } from "../../packages/server/src/delivery/worker/ownership.ts";
import type { LeaseId } from "../../packages/server/src/ids.ts";
import type { LeaseBeat, LeaseKind, LeaseStore } from "../../packages/server/src/leases/lease.ts";
import { type Session, SimulatedFailure } from "./database.ts";
import type { ShardRow, Tables } from "./tables.ts";

/** Called when a release begins, and when it is committed. */
export interface ReleaseHooks {
  readonly onReleases: (shards: readonly OwnedShard[]) => void;
  readonly onGiven: (shards: readonly number[]) => void;
}

/** `shards` in the simulated database. */
export class SimulatedShards implements ShardStore {
  readonly tables: Tables;
  readonly #session: Session;
  readonly #beats: Session;
  readonly #hooks: ReleaseHooks;

  constructor(session: Session, beats: Session, hooks: ReleaseHooks) {
    this.tables = session.tables;
    this.#session = session;
    this.#beats = beats;
    this.#hooks = hooks;
  }

  map(leaseId: LeaseId): Promise<ShardMap> {
    return this.#session.read(() => {
      const owned = new Map<LeaseId | null, number>();
      for (const { leaseId: owner } of this.tables.shards) owned.set(owner, (owned.get(owner) ?? 0) + 1);
      const workers = [...this.tables.leases.values()]
        .filter(({ kind }) => kind === "delivery")
        .map(({ id, beat }) => ({ leaseId: id, beats: beat, owned: owned.get(id) ?? 0 }));
      return { workers, mine: this.tables.shardsOf(leaseId).map(copy), free: owned.get(null) ?? 0 };
    });
  }

  claim(leaseId: LeaseId, count: number): Promise<readonly OwnedShard[]> {
    return this.takeOf(leaseId, count, ({ leaseId: owner }) => owner === null);
  }

  owned(leaseId: LeaseId): Promise<readonly OwnedShard[]> {
    return this.#beats.read(() => this.tables.shardsOf(leaseId).map(copy));
  }

  release(leaseId: LeaseId, shards: readonly OwnedShard[], over?: "lease"): Promise<void> {
    const session = over === "lease" ? this.#beats : this.#session;
    if (over === undefined) this.#hooks.onReleases(shards);
    const isStill = ({ shard, epoch }: OwnedShard) =>
      this.tables.shards[shard]?.leaseId === leaseId && this.tables.shards[shard]?.epoch === epoch;
    return session.write({
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
  takeOf(leaseId: LeaseId, count: number, mayTake: (row: ShardRow) => boolean): Promise<readonly OwnedShard[]> {
    let candidates: readonly ShardRow[] = [];
    return this.#session.write({
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

/** The locks that a deletion takes: a beat waits for one of them, a new reference to the row for the other. */
function leaseLocks(id: LeaseId): readonly string[] {
  return [`beat ${id}`, `key ${id}`];
}

/** `leases` in the simulated database. */
export class SimulatedLeases implements LeaseStore {
  readonly session: Session;
  readonly tables: Tables;
  readonly #onRemove: (id: LeaseId) => void;

  /** @param onRemove called before the holder removes its own lease */
  constructor(session: Session, onRemove: (id: LeaseId) => void) {
    this.session = session;
    this.tables = session.tables;
    this.#onRemove = onRemove;
  }

  insert(id: LeaseId, kind: LeaseKind): Promise<void> {
    const { leases } = this.tables;
    return this.session.write({
      name: "insert lease",
      candidates: () => leaseLocks(id),
      apply: () => {
        const beatenUs = this.session.database.nowUs();
        if (!leases.has(id)) leases.set(id, { id, kind, beat: 0, beatenUs });
      },
    });
  }

  beat(id: LeaseId, kind: LeaseKind): Promise<readonly LeaseBeat[] | undefined> {
    const { leases } = this.tables;
    let beats: readonly LeaseBeat[] = [];
    return this.session.write({
      name: "beat",
      candidates: () => {
        beats = [...leases.values()].map((lease) => ({ id: lease.id, beat: lease.beat }));
        return leases.has(id) ? [`beat ${id}`] : [];
      },
      apply: () => {
        const lease = leases.get(id);
        if (lease === undefined) return undefined;
        lease.beat += 1;
        lease.kind = kind;
        lease.beatenUs = this.session.database.nowUs();
        return beats;
      },
    });
  }

  async remove(id: LeaseId): Promise<void> {
    this.#onRemove(id);
    await this.delete([id], () => true);
  }

  removeDead(dead: readonly LeaseBeat[]): Promise<readonly LeaseId[]> {
    const beats = new Map(dead.map(({ id, beat }) => [id, beat]));
    return this.delete([...beats.keys()], (id) => this.tables.leases.get(id)?.beat === beats.get(id));
  }

  /** Deletes leases; their shards are free with it. @param isStill is asked again when the rows are locked */
  delete(ids: readonly LeaseId[], isStill: (id: LeaseId) => boolean): Promise<readonly LeaseId[]> {
    const { leases } = this.tables;
    return this.session.write({
      name: "delete leases",
      candidates: () => ids.filter((id) => leases.has(id) && isStill(id)).flatMap(leaseLocks),
      more: () => ids.flatMap((id) => this.tables.shardsOf(id)).map(({ shard }) => `shard ${shard}`),
      apply: () => {
        const deleted = ids.filter((id) => leases.has(id) && isStill(id));
        for (const id of deleted) {
          leases.delete(id);
          for (const row of this.tables.shardsOf(id)) this.tables.own(row, null);
        }
        return deleted;
      },
    });
  }
}
