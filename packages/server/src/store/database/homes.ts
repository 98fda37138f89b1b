import type { Pool } from "pg";
import type { PartnerId } from "../../ids.ts";
import { shardCount, shardOf } from "../../shard.ts";

/**
 * Where everything of some partners is: on one PostgreSQL there is one home, on Citus a schema on one of its nodes. Its
 * connections lead to that node, so that no statement needs another one.
 */
export interface Home {
  /** Questions of people and of administration. */
  readonly pool: Pool;
  /** The hot statements. */
  readonly engine: Pool;
  /** What makes and drops tables: with Citus the coordinator alone may. */
  readonly ddl: Pool;
  /**
   * Whether one part of a statement may hand rows to another that inserts them. Citus sends such rows to every node and
   * commits in two phases, so that one node that is down would stop all homes: there, it is done step by step.
   */
  readonly handsRowsOn: boolean;
}

interface OfPartner {
  readonly partnerId: PartnerId;
}

/** One of a kind for each home. */
export interface PerHome<One> {
  of(partnerId: PartnerId): One;
}

/** The look-up that says which connections hold a partner. Shards that follow each other share a home. */
export class Homes {
  readonly all: readonly Home[];

  /** @param all as many as divide the number of shards */
  constructor(all: readonly Home[]) {
    this.all = all;
  }

  of(partnerId: PartnerId): Home {
    return this.#at(shardOf(partnerId));
  }

  /** Makes one of a kind for each home. */
  each<One>(make: (home: Home) => One): PerHome<One> {
    const made = new Map(this.all.map((home) => [home, make(home)]));
    // A home is only ever one of `all`.
    return { of: (partnerId) => made.get(this.of(partnerId)) as One };
  }

  /** Asks each home about its own, all at once, and answers all together. */
  async askAbout<Item, Answer>(
    items: readonly Item[],
    shardOfItem: (item: Item) => number,
    ask: (home: Home, some: readonly Item[]) => Promise<readonly Answer[]>,
  ): Promise<readonly Answer[]> {
    const asked = [...this.#split(items, shardOfItem)];
    return (await Promise.all(asked.map(([home, some]) => ask(home, some)))).flat();
  }

  /** What is asked about, by the home that holds it. */
  #split<Item>(items: readonly Item[], shardOfItem: (item: Item) => number): ReadonlyMap<Home, readonly Item[]> {
    const [only, ...others] = this.all;
    if (only !== undefined && others.length === 0) return new Map([[only, items]]);
    const byHome = new Map<Home, Item[]>();
    for (const item of items) {
      const home = this.#at(shardOfItem(item));
      const some = byHome.get(home);
      if (some === undefined) byHome.set(home, [item]);
      else some.push(item);
    }
    return byHome;
  }

  /** Asks each home about its own, all at once. One answer for each, in the order of what is asked about. */
  async ask<Item extends OfPartner, Answer>(
    items: readonly Item[],
    ask: (home: Home, some: readonly Item[]) => Promise<readonly Answer[]>,
  ): Promise<readonly Answer[]> {
    const answers = new Map<Item, Answer>();
    const asked = [...this.#split(items, ({ partnerId }) => shardOf(partnerId))];
    await Promise.all(
      asked.map(async ([home, some]) => {
        const told = await ask(home, some);
        for (const [nth, item] of some.entries()) answers.set(item, told[nth] as Answer);
      }),
    );
    return items.map((item) => answers.get(item) as Answer);
  }

  /** Asks every home the same. */
  async gather<Answer>(ask: (home: Home) => Promise<readonly Answer[]>): Promise<readonly Answer[]> {
    return (await Promise.all(this.all.map(ask))).flat();
  }

  /** Of `rowsMax` that may be taken at once, how many each home may give. */
  share(rowsMax: number): number {
    return Math.ceil(rowsMax / this.all.length);
  }

  #at(shard: number): Home {
    const home = this.all[Math.floor((shard * this.all.length) / shardCount)];
    if (home === undefined) throw new Error(`No home holds shard ${shard}.`);
    return home;
  }
}
