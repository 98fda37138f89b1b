import type { LeaseId } from "../../packages/server/src/ids.ts";
import type { LeaseBeat, LeaseKind, LeaseStore } from "../../packages/server/src/leases/store.ts";
import type { EventLoop } from "../service/event-loop.ts";
import type { SimulatedDatabase } from "./database.ts";
import type { Line } from "./line.ts";
import type { Tables } from "./tables.ts";

/** The locks that a deletion takes: a beat waits for one of them, a new reference to the row for the other. */
function leaseLocks(id: LeaseId): readonly string[] {
  return [`beat ${id}`, `key ${id}`];
}

/** `leases` in the simulated database. */
export class SimulatedLeases implements LeaseStore {
  protected readonly database: SimulatedDatabase;
  protected readonly tables: Tables;
  readonly #loop: EventLoop;
  readonly #line: Line;
  readonly #onRemove: (id: LeaseId) => void;

  /** @param onRemove called before the holder removes its own lease */
  constructor(
    database: SimulatedDatabase,
    tables: Tables,
    loop: EventLoop,
    line: Line,
    onRemove: (id: LeaseId) => void,
  ) {
    this.database = database;
    this.tables = tables;
    this.#loop = loop;
    this.#line = line;
    this.#onRemove = onRemove;
  }

  insert(id: LeaseId, kind: LeaseKind): Promise<void> {
    const { leases } = this.tables;
    return this.database.write(this.#loop, this.#line, {
      name: "insert lease",
      candidates: () => leaseLocks(id),
      apply: () => {
        const sinceUs = this.database.nowUs();
        if (!leases.has(id)) leases.set(id, { id, kind, sinceUs, beat: 0, beatenUs: sinceUs });
      },
    });
  }

  beat(id: LeaseId, kind: LeaseKind): Promise<readonly LeaseBeat[] | undefined> {
    const { leases } = this.tables;
    let beats: readonly LeaseBeat[] = [];
    return this.database.write(this.#loop, this.#line, {
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
        lease.beatenUs = this.database.nowUs();
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
  protected delete(ids: readonly LeaseId[], isStill: (id: LeaseId) => boolean): Promise<readonly LeaseId[]> {
    const { leases } = this.tables;
    return this.database.write(this.#loop, this.#line, {
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
