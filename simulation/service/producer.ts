import type { NotifiedCommand } from "@paybell/contract";
import type { Delivery } from "../../packages/server/src/delivery/delivery.ts";
import type { ChainId, NotificationId } from "../../packages/server/src/ids.ts";
import { queueOf } from "../../packages/server/src/notification.ts";
import type { SimulationContext } from "../context.ts";
import { deliveryOf, type SimulatedNotification, type Tables } from "../database/tables.ts";
import type { Merchant } from "../outside/merchant.ts";
import type { World } from "../world.ts";
import type { Instance } from "./instance.ts";

/** A few answers to a COMMIT are later than outcomes are remembered. */
const veryLateMs = 25_000;
/** By the clock of its loop: what waits for a turn has it after 100 ms, which a timer may be late for. */
const turnWithinMs = 150;

/** The part of a process that runs commands: each makes notifications durable, and then passes them on. */
export function producerOf(context: SimulationContext, chains: Chains, instance: Instance) {
  const { world, plan, database, notifications } = context;
  const { random, agenda } = world;

  /** Begins a transaction now and then. */
  function start(): void {
    const { loadFactor } = context;
    const perSecond = (plan.load * Math.max(loadFactor, 0.001)) / plan.services;
    const waitMs = Math.min(2_000, (-Math.log(1 - random.next()) / perSecond) * 1_000);
    instance.loop.timers.after(waitMs, () => {
      if (context.loadFactor > 0 && waitMs < 2_000) void takeTurn().then(() => begin());
      start();
    });
  }

  /** Invariant 18. */
  async function takeTurn(): Promise<void> {
    const { backpressure, loop, name } = instance;
    const turn = backpressure.waitForTurn();
    if (turn === undefined) return;
    const waits = () => world.violated(18, `${name} has waited ${turnWithinMs} ms for a turn of intake`);
    const cancel = loop.timers.after(turnWithinMs, waits);
    await turn;
    cancel();
  }

  function begin(): void {
    const made = chains.begin(database.nowUs());
    // Most take a moment; a few stay open while others are committed.
    const begunMs = instance.loop.clock.monotonicMs();
    const openMs = random.chance(0.03) ? random.between(5, 3_000) : random.between(0.3, 3);
    agenda.after(openMs, () => commit(made, begunMs));
  }

  function commit(made: readonly SimulatedNotification[], begunMs: number): void {
    const { isCommitted, isKnown } = database.fateOfCommit();
    // A process that died before it sent the COMMIT takes its transaction along.
    const isSent = instance.loop.isAlive || random.chance(0.5);
    if (isCommitted && isSent) chains.committed(made);
    else chains.rolledBack(made);
    if (!isCommitted || !isSent || !isKnown) return;
    // As they were committed: a stalled process passes them on late, whatever happened since.
    const rows = made.map((one) => deliveryOf(one));
    agenda.after(answeredAfterMs(), () =>
      instance.loop.enter(() => {
        for (const row of rows) offer(row, begunMs);
      }),
    );
  }

  /** Invariant 19. */
  function offer(row: Delivery, begunMs: number): void {
    try {
      instance.passOn(row, begunMs);
    } catch (error) {
      world.violated(19, `an error of delivery ends a command, which is committed: ${error}`);
    }
  }

  function answeredAfterMs(): number {
    const isLate = notifications.lateChance > 0 && random.chance(notifications.lateChance);
    return isLate ? random.between(1, random.chance(0.2) ? veryLateMs : 400) : database.tookMs(0.2);
  }

  return { start };
}

interface Open {
  readonly chains: SimulatedNotification[][];
  batch: { readonly name: string; readonly members: SimulatedNotification[]; underWay: number };
}

const chainLengthMax = 4;
const openChainsMax = 6;

export type Chains = ReturnType<typeof commandChains>;

/** The activity of merchants' terminals: single sales, chains of commands, and settlements of batches. */
export function commandChains(world: World, tables: Tables) {
  const { random } = world;
  const openOfMerchants = new Map<Merchant, Open>();
  const chainOf = new Map<
    SimulatedNotification,
    { readonly open: Open; readonly chain: SimulatedNotification[] | undefined }
  >();
  let madeCount = 0;

  /** The rows of one transaction; it is not committed yet. */
  function begin(dueAtUs: number): readonly SimulatedNotification[] {
    const merchant = pickMerchant();
    const open = openOf(merchant);
    const { batch } = open;
    if (random.chance(0.03) && batch.underWay === 0 && batch.members.length > 0) {
      open.batch = newBatch();
      const settlement = make(merchant, dueAtUs, { settlesBatch: batch.name });
      settlement.predecessors = batch.members;
      chainOf.set(settlement, { open, chain: undefined });
      return [settlement];
    }
    const count = random.chance(0.1) ? 2 + random.within(0, 11) : 1;
    return Array.from({ length: count }, () => makeSale(merchant, open, dueAtUs));
  }

  function committed(made: readonly SimulatedNotification[]): void {
    for (const one of made) {
      tables.change(one, { state: "pending" });
      end(one, true);
    }
  }

  function rolledBack(made: readonly SimulatedNotification[]): void {
    for (const one of made) end(one, false);
  }

  function makeSale(merchant: Merchant, open: Open, dueAtUs: number): SimulatedNotification {
    const chain = random.chance(0.3) ? open.chains.shift() : undefined;
    const one = make(merchant, dueAtUs, chain && { follows: chain });
    if (chain !== undefined) one.predecessors = [...chain];
    open.batch.underWay += 1;
    const begun = chain ?? (random.chance(0.3) ? [] : undefined);
    chainOf.set(one, { open, chain: begun });
    return one;
  }

  /** A chain goes on when its last notification is committed, and a batch is settled when all of them are. */
  function end(one: SimulatedNotification, isCommitted: boolean): void {
    const { open, chain } = chainOf.get(one) ?? {};
    chainOf.delete(one);
    if (open === undefined || one.settlesBatch !== null) return;
    open.batch.underWay -= 1;
    if (isCommitted) {
      chain?.push(one);
      if (open.batch.members.length < 40) open.batch.members.push(one);
    }
    if (chain === undefined || chain.length === 0 || chain.length >= chainLengthMax) return;
    open.chains.push(chain);
    if (open.chains.length > openChainsMax) open.chains.shift();
  }

  function make(
    merchant: Merchant,
    dueAtUs: number,
    { settlesBatch = null, follows }: { settlesBatch?: string | null; follows?: readonly SimulatedNotification[] } = {},
  ): SimulatedNotification {
    madeCount += 1;
    const number = madeCount.toString(16).padStart(12, "0");
    const own = random.chance(0.25) ? 1 + random.within(0, 1) : undefined;
    const callBackUrl = own === undefined ? null : `${merchant.endpoints[own]?.origin}/${random.pick(["ipn", "old"])}`;
    const command: NotifiedCommand = settlesBatch !== null ? "SETTLEMENT" : follows === undefined ? "SALE" : "VOID";
    return {
      partnerId: merchant.id,
      id: `01900000-0000-7000-8000-${number}` as NotificationId,
      shard: merchant.shard,
      command,
      chainId: (follows?.[0]?.chainId ?? `chain-${number}`) as ChainId,
      follows: follows !== undefined,
      settlesBatch,
      bytes: settlesBatch === null ? random.pick([600, 900, 1_500]) : random.pick([4_000, 60_000, 3_600_000]),
      callBackUrl,
      predecessors: [],
      state: "new",
      queue: queueOf({ callBackUrl, command }, merchant.settingsHeld(world.nowMs, random)),
      dueAtUs,
      round: 0,
      attemptsMade: 0,
      scheduleStartMs: Math.floor(dueAtUs / 1_000),
      asked: 0,
      isAsked: false,
      requests: 0,
      toRegistered: false,
      changedMs: world.nowMs,
      acceptedRounds: new Set(),
      wasParked: false,
      sentNow: 0,
      mayOvertake: false,
      starts: [],
      notified: undefined,
    };
  }

  function pickMerchant(): Merchant {
    const { merchants } = tables;
    const all = merchants.reduce((sum, { weight }) => sum + weight, 0);
    let at = random.next() * all;
    for (const merchant of merchants) {
      at -= merchant.weight;
      if (at < 0) return merchant;
    }
    return random.pick(merchants);
  }

  function openOf(merchant: Merchant): Open {
    const open = openOfMerchants.get(merchant) ?? { chains: [], batch: newBatch() };
    openOfMerchants.set(merchant, open);
    return open;
  }

  function newBatch(): Open["batch"] {
    return { name: `batch-${madeCount}`, members: [], underWay: 0 };
  }

  return { begin, committed, rolledBack };
}
