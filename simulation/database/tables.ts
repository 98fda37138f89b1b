import type { Delivery } from "../../packages/server/src/delivery/delivery.ts";
import { type Circuit, closedCircuit } from "../../packages/server/src/delivery/limits/circuit.ts";
import type { CircuitChange } from "../../packages/server/src/delivery/limits/circuits.ts";
import type {
  DeliveryKey,
  DeliveryOutcome,
  QueuePosition,
  Recorded,
} from "../../packages/server/src/delivery/store.ts";
import { type LeaseId, type NotificationId, type PartnerId, shardCount } from "../../packages/server/src/ids.ts";
import type { LeaseKind } from "../../packages/server/src/leases/lease.ts";
import type { Merchant } from "../outside/merchant.ts";

export interface LeaseRow {
  readonly id: LeaseId;
  kind: LeaseKind;
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
  /** The latest that are over. */
  readonly ended: SimulatedNotification[] = [];
  /** Accepted ones that people no longer ask for, the oldest first. */
  readonly #leaving: SimulatedNotification[] = [];

  constructor(merchants: readonly Merchant[], nowMs: () => number) {
    this.merchants = merchants;
    this.#nowMs = nowMs;
  }

  merchantOf(id: PartnerId): Merchant | undefined {
    return this.merchants.find((merchant) => merchant.id === id);
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

  /** Carries out an outcome, as far as its guards let it. */
  carryOut(outcome: DeliveryOutcome, nowUs: number): Recorded {
    const { id, next, round, circuits } = outcome;
    for (const change of circuits) this.#writeCircuit(change, nowUs);
    const one = this.notifications.get(id);
    if (next.kind === "accepted") {
      if (one === undefined || one.state === "accepted" || one.round > round) return "missed";
      this.change(one, { state: "accepted" });
      return "applied";
    }
    if (!isSame(one, outcome)) return "missed";
    if (next.kind === "parked") this.change(one, { state: "parked" });
    else {
      const isAsked = isAskedSince(one, outcome);
      const dueAtUs = isAsked ? one.dueAtUs : nowUs + Math.round(next.delayMs * 1_000);
      const asked = one.asked + Number(one.asked < (outcome.asked ?? 0));
      this.change(one, { dueAtUs, attemptsMade: one.attemptsMade + 1, asked, isAsked });
    }
    return "applied";
  }

  /** Unless a later owner or a person changed it since. */
  #writeCircuit({ partnerId, queue, circuit, epoch, controlNo }: CircuitChange, nowUs: number): void {
    const key = circuitKey(partnerId, queue);
    const row = this.circuits.get(key);
    if (row !== undefined && (row.epoch > epoch || row.controlNo !== controlNo)) return;
    const probeAtUs = circuit.probeInMs === null ? null : nowUs + circuit.probeInMs * 1_000;
    this.circuits.set(key, { partnerId, queue, circuit, probeAtUs, writtenUs: nowUs, epoch, controlNo });
  }

  shardsOf(id: LeaseId): readonly ShardRow[] {
    return this.shards.filter(({ leaseId }) => leaseId === id);
  }

  own(row: ShardRow, leaseId: LeaseId | null): void {
    row.leaseId = leaseId;
    row.changedMs = this.#nowMs();
  }

  #keep(one: SimulatedNotification): void {
    this.ended.push(one);
    if (this.ended.length <= keptMax) return;
    const oldest = this.ended.shift();
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
    return one.state === "accepted" && !this.ended.includes(one);
  }
}

export function circuitKey(partnerId: PartnerId, queue: string): string {
  return `${partnerId} ${queue}`;
}

export function closeCircuit(row: CircuitRow): void {
  row.circuit = { ...closedCircuit, lastReason: row.circuit.lastReason };
  row.probeAtUs = null;
  row.controlNo += 1;
}

/** Whether the row is still of the round and attempt that a write is about. */
export function isSame(one: SimulatedNotification | undefined, key: DeliveryKey): one is SimulatedNotification {
  return one?.state === "pending" && one.round === key.round && one.attemptsMade === key.attemptsMade;
}

/** Whether a person asked for an attempt since the row was read. */
export function isAskedSince({ isAsked, requests }: SimulatedNotification, read: DeliveryKey): boolean {
  return isAsked && requests > (read.requests ?? 0);
}

/** The first byte of one POST. */
export interface NotificationStart {
  readonly round: number;
  readonly attemptsMade: number;
  readonly leaseId: LeaseId;
  readonly epoch: number | undefined;
  /** By when it has ended, whatever became of it. */
  readonly deadlineMs: number;
  isEnded: boolean;
  /** Its outcome could not be stored: it is made again. */
  mayRepeat: boolean;
}

type RowFixed = "partnerId" | "id" | "command" | "chainId" | "follows" | "settlesBatch" | "bytes" | "callBackUrl";
type Changing<Row> = { -readonly [Name in keyof Row]: Row[Name] };

/** One notification: its row, and what really became of it. */
export interface SimulatedNotification
  extends Pick<Delivery, RowFixed>,
    Changing<Pick<Delivery, "queue" | "round" | "attemptsMade" | "scheduleStartMs" | "toRegistered">> {
  readonly shard: number;
  /** It leaves after these. */
  predecessors: readonly SimulatedNotification[];

  /** The row, as it is committed. `new`: its transaction has not ended yet. */
  state: "new" | "pending" | "parked" | "accepted";
  dueAtUs: number;
  /** Attempts of these that a person asked for; and whether the next one is. */
  asked: number;
  isAsked: boolean;
  /** How often people asked for it to be sent now. */
  requests: number;
  /** Since when the row is as it is, in the world's time. */
  changedMs: number;

  /** Rounds in which an endpoint answered 2xx. */
  readonly acceptedRounds: Set<number>;
  wasParked: boolean;
  /** Attempts of its round that the schedule does not count, as the checks know them. */
  sentNow: number;
  /** It waited for ten minutes, and may leave before its predecessors. */
  mayOvertake: boolean;
  starts: NotificationStart[];
  /** The worker that was notified of it, under the epoch of its shard. */
  notified: { readonly worker: string; readonly epoch: number; readonly atMs: number } | undefined;
}

/** The row as a reader gets it. */
export function deliveryOf(one: SimulatedNotification): Delivery {
  return {
    partnerId: one.partnerId,
    id: one.id,
    queue: one.queue,
    round: one.round,
    attemptsMade: one.attemptsMade,
    asked: one.asked + Number(one.isAsked),
    requests: one.requests,
    attemptsBefore: 0,
    scheduleStartMs: one.scheduleStartMs,
    chainId: one.chainId,
    follows: one.follows,
    settlesBatch: one.settlesBatch,
    toRegistered: one.toRegistered,
    transactionId: null,
    originalId: null,
    command: one.command,
    callBackUrl: one.callBackUrl,
    content: "{}",
    bytes: one.bytes,
  };
}

/** The pending rows of each queue, by (due_at, id). */
class PendingIndex {
  readonly #queues = new Map<PartnerId, Map<string, SimulatedNotification[]>>();

  insert(one: SimulatedNotification): void {
    const queues = this.#queues.get(one.partnerId) ?? new Map<string, SimulatedNotification[]>();
    this.#queues.set(one.partnerId, queues);
    const rows = queues.get(one.queue) ?? [];
    queues.set(one.queue, rows);
    rows.splice(this.firstAfter(rows, one), 0, one);
  }

  remove(one: SimulatedNotification): void {
    const queues = this.#queues.get(one.partnerId);
    const rows = queues?.get(one.queue);
    if (queues === undefined || rows === undefined) return;
    const at = this.firstAfter(rows, one) - 1;
    if (rows[at] !== one) throw new RangeError(`${one.id} is not in its queue`);
    rows.splice(at, 1);
    if (rows.length === 0) queues.delete(one.queue);
  }

  queue(partnerId: PartnerId, queue: string): readonly SimulatedNotification[] {
    return this.#queues.get(partnerId)?.get(queue) ?? [];
  }

  queues(partnerId: PartnerId): ReadonlyMap<string, readonly SimulatedNotification[]> {
    return this.#queues.get(partnerId) ?? new Map();
  }

  /** The index of the first row that is due at this time or later. */
  firstDue(rows: readonly SimulatedNotification[], dueAtUs: number): number {
    return this.#first(rows, (row) => row.dueAtUs >= dueAtUs);
  }

  /** The index of the first row after a position. */
  firstAfter(rows: readonly SimulatedNotification[], { dueAtUs, id }: QueuePosition): number {
    return this.#first(rows, (row) => row.dueAtUs > dueAtUs || (row.dueAtUs === dueAtUs && row.id > id));
  }

  /** @param isBeyond true from one row on */
  #first(rows: readonly SimulatedNotification[], isBeyond: (row: SimulatedNotification) => boolean): number {
    let [low, high] = [0, rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const row = rows[middle];
      if (row === undefined || isBeyond(row)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
