import type { Pool } from "pg";
import type { PartnerId } from "../../ids.ts";
import { homeOf, shardOf } from "../../shard.ts";

/**
 * The place of some partners' rows: plain PostgreSQL is one home, on Citus a home is a schema on one of the nodes. Its
 * connections go to that node, so that no statement needs another one.
 */
export interface Home {
  /** For queries of people and administration. */
  readonly pool: Pool;
  /** For the engine's statements. */
  readonly engine: Pool;
  /** For creating and dropping tables: with Citus only at the coordinator. */
  readonly ddl: Pool;
  /**
   * Whether one part of a statement may pass rows to another that inserts them. Citus sends such rows to every node and
   * commits in two phases, so one unavailable node would stop all homes. There, it is done step by step.
   */
  readonly handsRowsOn: boolean;
}

interface OfPartner {
  readonly partnerId: PartnerId;
}

/** One instance per home. */
export interface PerHome<One> {
  of(partnerId: PartnerId): One;
}

/** Finds the connections for a partner. Consecutive shards share a home. */
export class Homes {
  readonly all: readonly Home[];

  /** @param all their number must divide the number of shards */
  constructor(all: readonly Home[]) {
    this.all = all;
  }

  of(partnerId: PartnerId): Home {
    return this.#at(shardOf(partnerId));
  }

  /** Makes one instance per home. */
  each<One>(make: (home: Home) => One): PerHome<One> {
    const made = new Map(this.all.map((home) => [home, make(home)]));
    // Every home is one of `all`.
    return { of: (partnerId) => made.get(this.of(partnerId)) as One };
  }

  /** Queries each home about its own items concurrently, and joins the answers. */
  async askAbout<Item, Answer>(
    items: readonly Item[],
    shardOfItem: (item: Item) => number,
    ask: (home: Home, some: readonly Item[]) => Promise<readonly Answer[]>,
  ): Promise<readonly Answer[]> {
    const asked = [...this.#split(items, shardOfItem)];
    return (await Promise.all(asked.map(([home, some]) => ask(home, some)))).flat();
  }

  /** Groups the items by home. */
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

  /** Queries each home about its own items concurrently. One answer per item, in order. */
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

  /** Runs the same query at every home. */
  async gather<Answer>(ask: (home: Home) => Promise<readonly Answer[]>): Promise<readonly Answer[]> {
    return (await Promise.all(this.all.map(ask))).flat();
  }

  /** The share of `rowsMax` rows that each home may contribute. */
  share(rowsMax: number): number {
    return Math.ceil(rowsMax / this.all.length);
  }

  #at(shard: number): Home {
    const home = this.all[homeOf(shard, this.all.length)];
    if (home === undefined) throw new Error(`No home holds shard ${shard}.`);
    return home;
  }
}
