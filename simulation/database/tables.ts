import type { Circuit } from "../../packages/server/src/delivery/circuit.ts";
import type { LeaseId, NotificationId, PartnerId } from "../../packages/server/src/ids.ts";
import type { LeaseKind } from "../../packages/server/src/leases/store.ts";
import { shardCount } from "../../packages/server/src/shard.ts";
import type { Merchant } from "../outside/merchant.ts";
import type { SimulatedNotification } from "./notification.ts";
import { PendingIndex } from "./pending-index.ts";

export interface LeaseRow {
  readonly id: LeaseId;
  kind: LeaseKind;
  readonly sinceUs: number;
  beat: number;
  beatenUs: number;
}

export interface ShardRow {
  readonly shard: number;
  leaseId: LeaseId | null;
  epoch: number;
  /** In simulated time. */
  changedMs: number;
}

export interface CircuitRow {
  readonly partnerId: PartnerId;
  readonly queue: string;
  circuit: Circuit;
  probeAtUs: number | null;
  /** When an outcome wrote it last. */
  writtenUs: number;
  epoch: number;
  controlNo: number;
}

/** Parked and accepted notifications that people may still ask for. */
const keptMax = 500;
/** Accepted ones are known for longer: one that is sent again is noticed. */
const knownForMs = 60_000;

/** Everything that is committed. */
export class Tables {
  readonly leases = new Map<LeaseId, LeaseRow>();
  readonly shards: readonly ShardRow[] = Array.from({ length: shardCount }, (_, shard) => ({
    shard,
    leaseId: null,
    epoch: 0,
    changedMs: 0,
  }));
  readonly circuits = new Map<string, CircuitRow>();
  readonly notifications = new Map<NotificationId, SimulatedNotification>();
  readonly pending = new PendingIndex();
  readonly merchants: readonly Merchant[];
  readonly #nowMs: () => number;
  readonly #ended: SimulatedNotification[] = [];
  /** Accepted ones that people no longer ask for, the oldest first. */
  readonly #leaving: SimulatedNotification[] = [];

  constructor(merchants: readonly Merchant[], nowMs: () => number) {
    this.merchants = merchants;
    this.#nowMs = nowMs;
  }

  /** The latest that are over. */
  get ended(): readonly SimulatedNotification[] {
    return this.#ended;
  }

  /** Changes a row, and with it its place in the index. */
  change(one: SimulatedNotification, changes: Partial<SimulatedNotification>): void {
    if (one.state === "pending") this.pending.remove(one);
    const { state } = one;
    Object.assign(one, changes, { changedMs: this.#nowMs() });
    if (one.state === "pending") this.pending.insert(one);
    if (one.state === "parked") one.wasParked = true;
    if (state === "new") this.notifications.set(one.id, one);
    if (one.state !== state && one.state !== "pending") this.#keep(one);
  }

  freeShards(): readonly ShardRow[] {
    return this.shards.filter(({ leaseId }) => leaseId === null);
  }

  shardsOf(id: LeaseId): readonly ShardRow[] {
    return this.shards.filter(({ leaseId }) => leaseId === id);
  }

  own(row: ShardRow, leaseId: LeaseId | null): void {
    row.leaseId = leaseId;
    row.changedMs = this.#nowMs();
  }

  #keep(one: SimulatedNotification): void {
    this.#ended.push(one);
    if (this.#ended.length <= keptMax) return;
    const oldest = this.#ended.shift();
    if (oldest !== undefined && this.#isOver(oldest)) this.#leaving.push(oldest);
    this.#forget();
  }

  #forget(): void {
    const beforeMs = this.#nowMs() - knownForMs;
    for (let [one] = this.#leaving; one !== undefined && one.changedMs < beforeMs; [one] = this.#leaving) {
      this.#leaving.shift();
      if (!this.#isOver(one)) continue;
      this.notifications.delete(one.id);
      one.predecessors = [];
    }
  }

  #isOver(one: SimulatedNotification): boolean {
    return one.state === "accepted" && !this.#ended.includes(one);
  }
}
