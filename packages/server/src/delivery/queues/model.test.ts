import fc from "fast-check";
import { expect, test } from "vitest";
import { type NotificationId, type PartnerId, shardOf } from "../../ids.ts";
import { deliveryOf } from "../delivery.fixture.ts";
import type { Delivery, QueueKey } from "../delivery.ts";
import { Time } from "../pending.fixture.ts";
import type { QueuePage, QueueRead } from "../store.ts";
import type { Queue } from "./queue.ts";
import { Queues } from "./queues.ts";

const partners = ["01", "02", "ff"].map((end) => `019aa000-0000-7000-8000-0000000000${end}` as PartnerId);
const names = ["", "https://a.example"];
const rowsMax = 12;
const bodyBytes = 100;

interface Row {
  delivery: Delivery;
  dueMs: number;
}

/** A database whose statements take 10 ms, and the rest of a worker, which does at once what the test says. */
class World {
  readonly time = new Time();
  readonly rows = new Map<NotificationId, Row>();
  readonly inFlight: { readonly delivery: Delivery; isOwned: boolean }[] = [];
  readonly lost = new Set<PartnerId>();
  readonly paused = new Set<PartnerId>();
  /** Until when the endpoint of a queue accepts nothing. */
  readonly blocked = new Map<string, number>();
  isAway = false;
  /** Something is due that nothing but a sweep finds. */
  needsSweep = false;
  statements = 0;
  readonly #recorded = new Map<NotificationId, Delivery>();
  readonly #ready = new Set<Queue>();
  readonly queues = new Queues({
    store: {
      read: (reads) => {
        expect(reads.filter(({ partnerId }) => !this.#mayRead(partnerId))).toEqual([]);
        return this.#answer(reads.map((read) => this.#page(read)));
      },
      scan: (read) => this.#answer(this.#page({ ...read, bytesMax: Infinity })),
      heads: (shards) => this.#answer(this.#heads(shards)),
      preceding: (deliveries) => this.#answer(deliveries.map((delivery) => this.#preceding(delivery))),
      postpone: async (deliveries) => {
        for (const { delayMs, ...key } of deliveries) {
          const row = this.rowOf(key);
          if (row !== undefined) row.dueMs = this.time.ms + delayMs;
        }
        await this.#answer(undefined);
      },
    },
    homes: 2,
    clock: this.time.clock,
    timers: this.time.timers,
    rowsMax,
    bytesMax: 10 * bodyBytes,
    limitsOf: (partnerId) =>
      this.#mayRead(partnerId) ? { rowsMax: 4, mayRead: true } : { rowsMax: 0, mayRead: false },
    readableAtMs: ({ partnerId, queue }) => {
      const untilMs = this.blocked.get(`${partnerId} ${queue}`) ?? Number.NEGATIVE_INFINITY;
      return untilMs === Infinity ? undefined : untilMs;
    },
    onReady: (queue) => void this.#ready.add(queue),
    onTrouble: (_, error) => {
      if (!this.isAway) throw error;
    },
  });

  /** The row, if it still is at this very round and attempt. */
  rowOf({ id, round, attemptsMade }: Pick<Delivery, "id" | "round" | "attemptsMade">): Row | undefined {
    const row = this.rows.get(id);
    return row?.delivery.round === round && row.delivery.attemptsMade === attemptsMade ? row : undefined;
  }

  commit(delivery: Delivery, dueMs: number): void {
    this.rows.set(delivery.id, { delivery, dueMs });
    if (this.lost.has(delivery.partnerId)) this.needsSweep = true;
  }

  /** Sends what is ready, as far as it may be, up to so many. */
  send(most: number): void {
    for (const queue of this.#ready) {
      if (this.inFlight.length >= most) return;
      if (!this.queues.isInUse(queue) || queue.head === undefined) this.#ready.delete(queue);
      else if (this.#isBlocked(queue.head)) this.queues.forgetReady(queue, (delivery) => this.#isBlocked(delivery));
      else this.#start(this.queues.startHead(queue) as Delivery);
    }
  }

  /** @param next when it is due again; undefined: it was accepted */
  answer(nth: number, retryMs?: number): void {
    const [sent] = this.inFlight.splice(nth % this.inFlight.length, 1);
    if (sent === undefined) return;
    const { delivery } = sent;
    const row = this.rowOf(delivery);
    this.#recorded.set(delivery.id, delivery);
    if (row !== undefined && retryMs === undefined) this.rows.delete(delivery.id);
    if (row !== undefined && retryMs !== undefined)
      this.commit({ ...delivery, attemptsMade: delivery.attemptsMade + 1 }, this.time.ms + retryMs);
    this.queues.ended(delivery, row === undefined ? "missed" : "applied", row === undefined ? undefined : retryMs);
  }

  lose(partnerId: PartnerId): void {
    this.lost.add(partnerId);
    this.queues.forgetPartner(partnerId);
    for (const sent of this.inFlight) if (sent.delivery.partnerId === partnerId) sent.isOwned = false;
  }

  async sweep(leavesRecent: boolean): Promise<void> {
    const shards = partners.filter((partnerId) => !this.lost.has(partnerId)).map((partnerId) => shardOf(partnerId));
    await this.queues
      .sweep(shards, (partnerId) => !this.lost.has(partnerId), leavesRecent)
      .catch(() => {
        this.needsSweep = true;
      });
  }

  check(): void {
    const inUse = this.queues.partners().flatMap((partnerId) => this.queues.queuesOf(partnerId));
    expect(this.queues.partners().filter((partnerId) => this.lost.has(partnerId))).toEqual([]);
    expect(inUse.filter(({ isIdle }) => isIdle)).toEqual([]);
    expect(this.queues.rows).toBe(inUse.reduce((sum, { rows }) => sum + rows, 0));
    expect(this.queues.bytes).toBe(inUse.reduce((sum, { bytes }) => sum + bytes, 0));
    expect(this.queues.bytes).toBe(this.queues.rows * bodyBytes);
    expect(this.queues.rows).toBeLessThanOrEqual(2 * rowsMax + partners.length);
  }

  #mayRead(partnerId: PartnerId): boolean {
    return !this.paused.has(partnerId) && !this.lost.has(partnerId);
  }

  #isBlocked({ partnerId, queue, callBackUrl }: Delivery): boolean {
    const untilMs = this.blocked.get(`${partnerId} ${queue}`) ?? 0;
    return this.paused.has(partnerId) || (untilMs > this.time.ms && callBackUrl === null);
  }

  #start(delivery: Delivery): void {
    const { id, partnerId, chainId, round, attemptsMade } = delivery;
    expect(this.inFlight.filter((sent) => sent.isOwned && sent.delivery.id === id)).toEqual([]);
    expect(this.lost.has(partnerId)).toBe(false);
    const last = this.#recorded.get(id);
    if (last !== undefined) expect([round, attemptsMade] > [last.round, last.attemptsMade]).toBe(true);
    const earlier = [...this.rows.values()].filter((row) => row.delivery.chainId === chainId && row.delivery.id < id);
    const isFirst = earlier.every((row) => row.delivery.round > 0);
    if (round === 0 && this.rows.has(id)) expect(isFirst).toBe(true);
    this.inFlight.push({ delivery, isOwned: true });
  }

  async #answer<T>(answer: T): Promise<T> {
    this.statements += 1;
    await new Promise<void>((resolve) => void this.time.timers.after(10, resolve));
    if (this.isAway) throw new Error("the database is away");
    return answer;
  }

  #queue({ partnerId, queue }: QueueKey): readonly Row[] {
    return [...this.rows.values()]
      .filter(({ delivery }) => delivery.partnerId === partnerId && delivery.queue === queue)
      .sort((one, other) => one.dueMs - other.dueMs || (one.delivery.id < other.delivery.id ? -1 : 1));
  }

  #page(read: QueueRead): QueuePage {
    expect(read.bytesMax).toBeGreaterThan(0);
    const { after, rowsMax: most, bytesMax } = read;
    const rest = this.#queue(read).filter(({ dueMs, delivery: { id } }) => {
      const dueAtUs = dueMs * 1_000;
      return after === undefined || dueAtUs > after.dueAtUs || (dueAtUs === after.dueAtUs && id > after.id);
    });
    const due = rest.filter(({ dueMs }) => dueMs <= this.time.ms);
    const page = due.slice(0, Math.max(1, Math.min(most, Math.floor(bytesMax / bodyBytes))));
    const next = rest[due.length];
    return {
      due: page.map(({ dueMs, delivery }) => ({ dueAtUs: dueMs * 1_000, id: delivery.id, delivery })),
      hasMore: due.length > page.length,
      nextInMs: due.length > page.length || next === undefined ? undefined : next.dueMs - this.time.ms,
    };
  }

  #heads(shards: readonly number[]) {
    return partners
      .filter((partnerId) => shards.includes(shardOf(partnerId)))
      .flatMap((partnerId) => names.flatMap((queue) => this.#queue({ partnerId, queue }).slice(0, 1)))
      .map(({ delivery, dueMs }) => ({ ...delivery, dueInMs: dueMs - this.time.ms }));
  }

  #preceding({ id, chainId, round, attemptsMade }: Delivery) {
    if (this.rowOf({ id, round, attemptsMade }) === undefined) return undefined;
    const chain = [...this.rows.values()].filter((row) => row.delivery.chainId === chainId && row.delivery.id < id);
    return { after: chain[0]?.delivery.id, ageMs: 0 };
  }
}

interface Step {
  readonly kind: string;
  readonly partnerId: PartnerId;
  readonly queue: string;
  readonly number: number;
}

/** Commits a notification, and tells the queues of it. */
function commit(world: World, { partnerId, queue, number }: Step, more: Partial<Delivery> = {}): Delivery {
  const scheduleStartMs = world.time.ms;
  const callBackUrl = number % 4 === 0 ? "https://accepts.example" : null;
  const delivery = deliveryOf(partnerId, { queue, callBackUrl, scheduleStartMs, bytes: bodyBytes, ...more });
  world.commit(delivery, delivery.scheduleStartMs);
  return delivery;
}

function offer(world: World, step: Step, more: Partial<Delivery> = {}): void {
  const delivery = commit(world, step, more);
  if (!world.lost.has(step.partnerId)) world.queues.offer(delivery);
}

const chained = ({ partnerId }: Step) => ({ chainId: partnerId as string as Delivery["chainId"] });

const steps: Record<string, (world: World, step: Step) => void | Promise<void>> = {
  offer,
  late: (world, step) => offer(world, step, { scheduleStartMs: world.time.ms - (step.number % 50) }),
  follower: (world, step) => offer(world, step, { ...chained(step), follows: true }),
  settlement: (world, step) => offer(world, step, { ...chained(step), settlesBatch: "batch" }),
  woken: (world, step) => {
    const delivery = commit(world, step);
    const sinceMs = step.number % 2 === 0 ? delivery.scheduleStartMs : undefined;
    if (!world.lost.has(step.partnerId)) world.queues.wake(delivery, sinceMs);
  },
  unhinted: (world, step) => {
    commit(world, step);
    world.needsSweep = true;
  },
  send: (world, { number }) => world.send(1 + (number % 20)),
  accepted: (world, { number }) => world.answer(number),
  retry: (world, { number }) => world.answer(number, number),
  redeliver: (world, { queue, number }) => {
    const row = [...world.rows.values()][number % world.rows.size];
    if (row === undefined) return;
    const { partnerId, round } = row.delivery;
    world.commit({ ...row.delivery, queue, round: round + 1, attemptsMade: 0 }, world.time.ms);
    if (!world.lost.has(partnerId)) world.queues.wake({ partnerId, queue }, world.time.ms);
  },
  rest: (world, { number }) => {
    const [sent] = world.inFlight.splice(number % world.inFlight.length, 1);
    if (sent === undefined) return;
    world.queues.rest(sent.delivery, number);
    // It may end while its partner is paused and its queue closed.
    world.needsSweep = true;
  },
  unchanged: ({ inFlight, queues }, { number }) => {
    const [sent] = inFlight.splice(number % inFlight.length, 1);
    if (sent !== undefined) queues.releaseUnchanged(sent.delivery);
  },
  pause: ({ paused, queues }, { partnerId }) => {
    if (paused.delete(partnerId)) return queues.reconsider(partnerId);
    paused.add(partnerId);
    for (const queue of queues.queuesOf(partnerId)) queues.forgetReady(queue);
  },
  block: ({ blocked, queues, time }, { partnerId, queue: name, number }) => {
    if (blocked.delete(`${partnerId} ${name}`)) return queues.reconsider(partnerId);
    blocked.set(`${partnerId} ${name}`, number % 2 === 0 ? Infinity : time.ms + number);
    for (const queue of queues.queuesOf(partnerId)) if (queue.name === name) queues.forgetReady(queue);
  },
  lose: (world, { partnerId }) => {
    if (world.lost.delete(partnerId)) void world.sweep(false);
    else world.lose(partnerId);
  },
  away: (world) => {
    world.isAway = !world.isAway;
  },
  sweep: (world) => void world.sweep(true),
  scan: ({ blocked, lost, queues }, { partnerId, queue }) => {
    if (!blocked.has(`${partnerId} ${queue}`)) return;
    const key = { partnerId, queue };
    const adopt = ({ due }: QueuePage) => void (!lost.has(partnerId) && queues.adopt(key, due));
    void queues.scan({ ...key, after: undefined, rowsMax: 3 }).then(adopt, () => undefined);
  },
  pass: ({ time }, { number }) => time.pass(number),
};

const step = fc.record({
  kind: fc.constantFrom(...Object.keys(steps), "offer", "send", "send", "accepted"),
  partnerId: fc.constantFrom(...partners),
  queue: fc.constantFrom(...names),
  number: fc.nat(1_000),
});

test("whatever happens, each notification is sent in its order until its outcome is recorded, and then nothing is kept", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (all) => {
      const world = new World();
      const { time, queues, lost, paused, blocked } = world;
      for (const one of all) {
        await steps[one.kind]?.(world, one);
        await time.pass(one.number % 8);
        world.check();
      }
      world.isAway = false;
      await time.pass(500);
      if (lost.size > 0) world.needsSweep = true;
      const changed = partners.filter((id) => paused.has(id) || [...blocked.keys()].some((key) => key.startsWith(id)));
      for (const states of [lost, paused, blocked]) states.clear();
      for (const partnerId of changed) queues.reconsider(partnerId);
      for (let rounds = 0; rounds < 100 && world.rows.size > 0; rounds += 1) {
        if (world.needsSweep) void world.sweep(false);
        await time.pass(100);
        world.send(3);
        world.check();
        while (world.inFlight.length > 0) world.answer(0);
      }
      expect([...world.rows.values()]).toEqual([]);
      await time.pass(6_000);
      expect([queues.rows, queues.bytes, queues.partners()]).toEqual([0, 0, []]);
      const { statements } = world;
      await time.pass(60_000);
      expect([world.statements, time.waiting]).toEqual([statements, 0]);
    }),
    { numRuns: 300 },
  );
});
