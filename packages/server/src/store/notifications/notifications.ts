import { nilId, type PartnerId, shardOf } from "../../ids.ts";
import type { NotificationKey, NotificationStore } from "../../notifications/store.ts";
import type { Database } from "../database/database.ts";
import { planned } from "../database/statement.ts";
import { readEvents } from "../events.ts";
import type { Partitions } from "../schema/partitions.ts";
import { readBacklog, readContents, readFollowing, readHistory, readPage, writePull } from "./page.ts";
import { findProof } from "./proofs.ts";
import { countRedelivery, insertTestNotification, redeliverAll, sumOf } from "./redeliver.ts";
import { locateKey, lookUpKeys, readKeys } from "./search.ts";
import { readAttempts, readKeyUse, readMatching, readStatuses, readSubjects } from "./status.ts";

const allIds = planned<{ id: PartnerId }>("SELECT id FROM partners ORDER BY id");

/** @param database `pool` is of the database with the partners */
export function postgresNotifications(
  { pool, homes }: Pick<Database, "pool" | "homes">,
  partitions: Pick<Partitions, "ensureDays">,
): NotificationStore {
  const poolOf = (partnerId: PartnerId) => homes.of(partnerId).pool;
  return {
    history: (partnerId) => readHistory(poolOf(partnerId)),

    page: (partnerId, after, horizon, rowsMax) =>
      readPage(poolOf(partnerId), partnerId, after ?? { xid: 0n, id: nilId }, horizon, rowsMax),

    following: (places) => homes.ask(places, ({ pool }, some) => readFollowing(pool, some)),

    contents: (partnerId, ids) => readContents(poolOf(partnerId), partnerId, ids),

    backlog: (partnerId) => readBacklog(poolOf(partnerId), partnerId),

    notePull: (partnerId, cursor) => writePull(poolOf(partnerId), partnerId, cursor),

    partnerIds: async () => {
      const rows = await allIds.rows(pool);
      return rows.map(({ id }) => id);
    },

    locate: (id, partnerId) => locateKey(homes, id, partnerId),

    keptProof: (id) => findProof(homes, id),

    lookUp: (q, partnerId, rowsMax) => lookUpKeys(homes, q, partnerId, rowsMax),

    keys: (range, rowsMax) => readKeys(homes, range, rowsMax),

    statuses: async (keys) =>
      inOrderOf(keys, await homes.askAbout(keys, shardOfKey, ({ pool }, some) => readStatuses(pool, some))),

    subjects: async (keys) =>
      new Map(await homes.askAbout(keys, shardOfKey, async ({ pool }, some) => [...(await readSubjects(pool, some))])),

    matching: async (keys, match) =>
      inOrderOf(keys, await homes.askAbout(keys, shardOfKey, ({ pool }, some) => readMatching(pool, some, match))),

    keyUse: (partnerId, sinceMs, rowsMax) => readKeyUse(poolOf(partnerId), partnerId, sinceMs, rowsMax),

    attempts: (key, rowsMax) => readAttempts(poolOf(key.partnerId), key, rowsMax),

    events: ({ partnerId, id, transactionId }, rowsMax) =>
      readEvents(poolOf(partnerId), partnerId, transactionId === null ? [id] : [id, transactionId], rowsMax),

    redeliver: (partnerId, ids, to, of) => redeliverAll(poolOf(partnerId), partitions, { partnerId, ids, to, ...of }),

    redeliveryCounts: async (id, partnerId) => {
      const asked = partnerId === undefined ? homes.all : [homes.of(partnerId)];
      return sumOf(await Promise.all(asked.map(({ pool }) => countRedelivery(pool, id, partnerId))));
    },

    insertTest: (test) => insertTestNotification(poolOf(test.partnerId), test),
  };
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
