import type { Pool } from "pg";
import { nilId, type PartnerId, shardOf } from "../../ids.ts";
import type { NotificationKey, NotificationStore } from "../../notifications/store.ts";
import type { Database } from "../database/database.ts";
import type { Homes } from "../database/homes.ts";
import { readEvents } from "../events.ts";
import type { Partitions } from "../schema/partitions.ts";
import { readBacklog, readContents, readFollowing, readHistory, readPage, writePull } from "./page.ts";
import { findProof } from "./proofs.ts";
import { countRedelivery, insertTestNotification, redeliverAll, sumOf } from "./redeliver.ts";
import { locateKey, lookUpKeys, readKeys } from "./search.ts";
import { readAttempts, readKeyUse, readMatching, readStatuses, readSubjects } from "./status.ts";

export class PostgresNotifications implements NotificationStore {
  readonly #pool: Pool;
  readonly #homes: Homes;
  readonly #partitions: Pick<Partitions, "ensureDays">;

  /** @param pool the database with the partners */
  constructor({ pool, homes }: Pick<Database, "pool" | "homes">, partitions: Pick<Partitions, "ensureDays">) {
    this.#pool = pool;
    this.#homes = homes;
    this.#partitions = partitions;
  }

  readonly history: NotificationStore["history"] = (partnerId) => readHistory(this.#poolOf(partnerId));

  readonly page: NotificationStore["page"] = (partnerId, after, horizon, rowsMax) =>
    readPage(this.#poolOf(partnerId), partnerId, after ?? { xid: 0n, id: nilId }, horizon, rowsMax);

  readonly following: NotificationStore["following"] = (places) =>
    this.#homes.ask(places, ({ pool }, some) => readFollowing(pool, some));

  readonly contents: NotificationStore["contents"] = (partnerId, ids) =>
    readContents(this.#poolOf(partnerId), partnerId, ids);

  readonly backlog: NotificationStore["backlog"] = (partnerId) => readBacklog(this.#poolOf(partnerId), partnerId);

  readonly notePull: NotificationStore["notePull"] = (partnerId, cursor) =>
    writePull(this.#poolOf(partnerId), partnerId, cursor);

  readonly partnerIds: NotificationStore["partnerIds"] = async () => {
    const { rows } = await this.#pool.query<{ id: PartnerId }>("SELECT id FROM partners ORDER BY id");
    return rows.map((row) => row.id);
  };

  readonly locate: NotificationStore["locate"] = (id, partnerId) => locateKey(this.#homes, id, partnerId);

  readonly keptProof: NotificationStore["keptProof"] = (id) => findProof(this.#homes, id);

  readonly lookUp: NotificationStore["lookUp"] = (q, partnerId, rowsMax) =>
    lookUpKeys(this.#homes, q, partnerId, rowsMax);

  readonly keys: NotificationStore["keys"] = (range, rowsMax) => readKeys(this.#homes, range, rowsMax);

  readonly statuses: NotificationStore["statuses"] = async (keys) =>
    inOrderOf(keys, await this.#homes.askAbout(keys, shardOfKey, ({ pool }, some) => readStatuses(pool, some)));

  readonly subjects: NotificationStore["subjects"] = async (keys) =>
    new Map(
      await this.#homes.askAbout(keys, shardOfKey, async ({ pool }, some) => [...(await readSubjects(pool, some))]),
    );

  readonly matching: NotificationStore["matching"] = async (keys, match) =>
    inOrderOf(keys, await this.#homes.askAbout(keys, shardOfKey, ({ pool }, some) => readMatching(pool, some, match)));

  readonly keyUse: NotificationStore["keyUse"] = (partnerId, sinceMs, rowsMax) =>
    readKeyUse(this.#poolOf(partnerId), partnerId, sinceMs, rowsMax);

  readonly attempts: NotificationStore["attempts"] = (key, rowsMax) =>
    readAttempts(this.#poolOf(key.partnerId), key, rowsMax);

  readonly events: NotificationStore["events"] = ({ partnerId, id, transactionId }, rowsMax) =>
    readEvents(this.#poolOf(partnerId), partnerId, transactionId === null ? [id] : [id, transactionId], rowsMax);

  readonly redeliver: NotificationStore["redeliver"] = (partnerId, ids, to, redelivery) =>
    redeliverAll(this.#poolOf(partnerId), this.#partitions, { partnerId, ids, to, redelivery });

  readonly redeliveryCounts: NotificationStore["redeliveryCounts"] = async (id, partnerId) => {
    const homes = partnerId === undefined ? this.#homes.all : [this.#homes.of(partnerId)];
    return sumOf(await Promise.all(homes.map(({ pool }) => countRedelivery(pool, id, partnerId))));
  };

  readonly insertTest: NotificationStore["insertTest"] = (test) =>
    insertTestNotification(this.#poolOf(test.partnerId), test);

  #poolOf(partnerId: PartnerId): Pool {
    return this.#homes.of(partnerId).pool;
  }
}

function shardOfKey({ partnerId }: NotificationKey): number {
  return shardOf(partnerId);
}

/** Homes answer independently: restores the requested order. */
function inOrderOf<Found extends NotificationKey>(keys: readonly NotificationKey[], found: readonly Found[]): Found[] {
  const places = new Map(keys.map(({ partnerId, id }, place) => [`${partnerId} ${id}`, place]));
  const placeOf = ({ partnerId, id }: NotificationKey) => places.get(`${partnerId} ${id}`) ?? 0;
  return [...found].sort((a, b) => placeOf(a) - placeOf(b));
}
