import type { NotifiedCommand } from "@paybell/contract";
import type { ChainId, NotificationId } from "../../packages/server/src/ids.ts";
import { queueOf } from "../../packages/server/src/registered-url.ts";
import type { SimulatedNotification } from "../database/notification.ts";
import type { Tables } from "../database/tables.ts";
import type { World } from "../world.ts";
import type { Merchant } from "./merchant.ts";

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
    const count = random.chance(0.1) ? 2 + random.below(12) : 1;
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
    const own = random.chance(0.25) ? 1 + random.below(2) : undefined;
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
      told: undefined,
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
