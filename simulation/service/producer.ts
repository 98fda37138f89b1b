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
export class Producer {
  readonly #context: SimulationContext;
  readonly #chains: Chains;
  readonly #instance: Instance;

  constructor(context: SimulationContext, chains: Chains, instance: Instance) {
    this.#context = context;
    this.#chains = chains;
    this.#instance = instance;
  }

  /** Begins a transaction now and then. */
  start(): void {
    const { world, plan, loadFactor } = this.#context;
    const perSecond = (plan.load * Math.max(loadFactor, 0.001)) / plan.services;
    const waitMs = Math.min(2_000, (-Math.log(1 - world.random.next()) / perSecond) * 1_000);
    this.#instance.loop.timers.after(waitMs, () => {
      if (this.#context.loadFactor > 0 && waitMs < 2_000) void this.#takeTurn().then(() => this.#begin());
      this.start();
    });
  }

  /** Invariant 18. */
  async #takeTurn(): Promise<void> {
    const { backpressure, loop, name } = this.#instance;
    const turn = backpressure.waitForTurn();
    if (turn === undefined) return;
    const waits = () => this.#context.world.violated(18, `${name} has waited ${turnWithinMs} ms for a turn of intake`);
    const cancel = loop.timers.after(turnWithinMs, waits);
    await turn;
    cancel();
  }

  #begin(): void {
    const { world, database } = this.#context;
    const made = this.#chains.begin(database.nowUs());
    // Most take a moment; a few stay open while others are committed.
    const begunMs = this.#instance.loop.clock.monotonicMs();
    const openMs = world.random.chance(0.03) ? world.random.between(5, 3_000) : world.random.between(0.3, 3);
    world.agenda.after(openMs, () => this.#commit(made, begunMs));
  }

  #commit(made: readonly SimulatedNotification[], begunMs: number): void {
    const { world, database } = this.#context;
    const { isCommitted, isKnown } = database.fateOfCommit();
    // A process that died before it sent the COMMIT takes its transaction along.
    const isSent = this.#instance.loop.isAlive || world.random.chance(0.5);
    if (isCommitted && isSent) this.#chains.committed(made);
    else this.#chains.rolledBack(made);
    if (!isCommitted || !isSent || !isKnown) return;
    // As they were committed: a stalled process passes them on late, whatever happened since.
    const rows = made.map((one) => deliveryOf(one));
    world.agenda.after(this.#answeredAfterMs(), () =>
      this.#instance.loop.enter(() => {
        for (const row of rows) this.#offer(row, begunMs);
      }),
    );
  }

  /** Invariant 19. */
  #offer(row: Delivery, begunMs: number): void {
    try {
      this.#instance.passOn(row, begunMs);
    } catch (error) {
      this.#context.world.violated(19, `an error of delivery ends a command, which is committed: ${error}`);
    }
  }

  #answeredAfterMs(): number {
    const { world, database, notifications } = this.#context;
    const { random } = world;
    const isLate = notifications.lateChance > 0 && random.chance(notifications.lateChance);
    return isLate ? random.between(1, random.chance(0.2) ? veryLateMs : 400) : database.tookMs(0.2);
  }
}

interface Open {
  readonly chains: SimulatedNotification[][];
  batch: { readonly name: string; readonly members: SimulatedNotification[]; underWay: number };
}

const chainLengthMax = 4;
const openChainsMax = 6;

/** The activity of merchants' terminals: single sales, chains of commands, and settlements of batches. */
export class Chains {
  readonly #world: World;
  readonly #tables: Tables;
  readonly #open = new Map<Merchant, Open>();
  readonly #chainOf = new Map<
    SimulatedNotification,
    { readonly open: Open; readonly chain: SimulatedNotification[] | undefined }
  >();
  #made = 0;

  constructor(world: World, tables: Tables) {
    this.#world = world;
    this.#tables = tables;
  }

  /** The rows of one transaction; it is not committed yet. */
  begin(dueAtUs: number): readonly SimulatedNotification[] {
    const { random } = this.#world;
    const merchant = this.#pickMerchant();
    const open = this.#openOf(merchant);
    const { batch } = open;
    if (random.chance(0.03) && batch.underWay === 0 && batch.members.length > 0) {
      open.batch = this.#newBatch();
      const settlement = this.#make(merchant, dueAtUs, { settlesBatch: batch.name });
      settlement.predecessors = batch.members;
      this.#chainOf.set(settlement, { open, chain: undefined });
      return [settlement];
    }
    const count = random.chance(0.1) ? 2 + random.within(0, 11) : 1;
    return Array.from({ length: count }, () => this.#makeSale(merchant, open, dueAtUs));
  }

  committed(made: readonly SimulatedNotification[]): void {
    for (const one of made) {
      this.#tables.change(one, { state: "pending" });
      this.#end(one, true);
    }
  }

  rolledBack(made: readonly SimulatedNotification[]): void {
    for (const one of made) this.#end(one, false);
  }

  #makeSale(merchant: Merchant, open: Open, dueAtUs: number): SimulatedNotification {
    const { random } = this.#world;
    const chain = random.chance(0.3) ? open.chains.shift() : undefined;
    const one = this.#make(merchant, dueAtUs, chain && { follows: chain });
    if (chain !== undefined) one.predecessors = [...chain];
    open.batch.underWay += 1;
    const begun = chain ?? (random.chance(0.3) ? [] : undefined);
    this.#chainOf.set(one, { open, chain: begun });
    return one;
  }

  /** A chain goes on when its last notification is committed, and a batch is settled when all of them are. */
  #end(one: SimulatedNotification, isCommitted: boolean): void {
    const { open, chain } = this.#chainOf.get(one) ?? {};
    this.#chainOf.delete(one);
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

  #make(
    merchant: Merchant,
    dueAtUs: number,
    { settlesBatch = null, follows }: { settlesBatch?: string | null; follows?: readonly SimulatedNotification[] } = {},
  ): SimulatedNotification {
    const { random } = this.#world;
    this.#made += 1;
    const number = this.#made.toString(16).padStart(12, "0");
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
      queue: queueOf({ callBackUrl, command }, merchant.settingsHeld(this.#world.nowMs, random)),
      dueAtUs,
      round: 0,
      attemptsMade: 0,
      scheduleStartMs: Math.floor(dueAtUs / 1_000),
      asked: 0,
      isAsked: false,
      toRegistered: false,
      changedMs: this.#world.nowMs,
      acceptedRounds: new Set(),
      wasParked: false,
      sentNow: 0,
      mayOvertake: false,
      starts: [],
      notified: undefined,
    };
  }

  #pickMerchant(): Merchant {
    const { merchants } = this.#tables;
    const all = merchants.reduce((sum, { weight }) => sum + weight, 0);
    let at = this.#world.random.next() * all;
    for (const merchant of merchants) {
      at -= merchant.weight;
      if (at < 0) return merchant;
    }
    return this.#world.random.pick(merchants);
  }

  #openOf(merchant: Merchant): Open {
    const open = this.#open.get(merchant) ?? { chains: [], batch: this.#newBatch() };
    this.#open.set(merchant, open);
    return open;
  }

  #newBatch(): Open["batch"] {
    return { name: `batch-${this.#made}`, members: [], underWay: 0 };
  }
}
