import type { Pool } from "pg";
import type { NotificationId, PartnerId, RedeliveryId } from "../../ids.ts";
import {
  type Following,
  firstId,
  type Held,
  type HistoryPoint,
  type HistoryPosition,
  type KeptProof,
  type KeyRange,
  type KeyUse,
  type NotificationContent,
  type NotificationKey,
  type NotificationStatus,
  type NotificationStore,
  type NotificationSubject,
  type PageRow,
  type RecordedAttempt,
  type RecordedEvent,
  type RedeliveryCounts,
  type StoredBacklog,
  type SubjectMatch,
  type TestNotification,
} from "../../notifications/store.ts";
import { shardOf } from "../../shard.ts";
import type { Database } from "../database/database.ts";
import type { Homes } from "../database/homes.ts";
import { readEvents } from "../events.ts";
import type { Partitions } from "../schema/partitions.ts";
import { readBacklog, readContents, readFollowing, readHistory, readPage, writePull } from "./page.ts";
import { findProof } from "./proofs.ts";
import { countRedelivery, insertTestNotification, redeliverAll, sumOf } from "./redeliver.ts";
import { locateKey, lookUpKeys, readKeys } from "./search.ts";
import { readAttempts, readKeyUse, readMatching, readStatuses, readSubjects } from "./status.ts";

/** The history of notifications in PostgreSQL. */
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

  history(partnerId: PartnerId): ReturnType<NotificationStore["history"]> {
    return readHistory(this.#homes.of(partnerId).pool);
  }

  page(
    partnerId: PartnerId,
    after: HistoryPoint | undefined,
    horizon: bigint,
    rowsMax: number,
  ): Promise<readonly PageRow[]> {
    return readPage(this.#homes.of(partnerId).pool, partnerId, after ?? { xid: 0n, id: firstId }, horizon, rowsMax);
  }

  following(places: readonly HistoryPosition[]): Promise<readonly Following[]> {
    return this.#homes.ask(places, ({ pool }, some) => readFollowing(pool, some));
  }

  contents(
    partnerId: PartnerId,
    ids: readonly NotificationId[],
  ): Promise<ReadonlyMap<NotificationId, NotificationContent>> {
    return readContents(this.#homes.of(partnerId).pool, partnerId, ids);
  }

  backlog(partnerId: PartnerId): Promise<StoredBacklog> {
    return readBacklog(this.#homes.of(partnerId).pool, partnerId);
  }

  notePull(partnerId: PartnerId, cursor: string): Promise<void> {
    return writePull(this.#homes.of(partnerId).pool, partnerId, cursor);
  }

  async partnerIds(): Promise<readonly PartnerId[]> {
    const { rows } = await this.#pool.query<{ id: PartnerId }>("SELECT id FROM partners ORDER BY id");
    return rows.map((row) => row.id);
  }

  locate(id: NotificationId, partnerId?: PartnerId): Promise<NotificationKey | undefined> {
    return locateKey(this.#homes, id, partnerId);
  }

  keptProof(id: NotificationId): Promise<KeptProof | undefined> {
    return findProof(this.#homes, id);
  }

  lookUp(q: string, partnerId: PartnerId | undefined, rowsMax: number): Promise<readonly NotificationKey[]> {
    return lookUpKeys(this.#homes, q, partnerId, rowsMax);
  }

  keys(range: KeyRange, rowsMax: number): Promise<readonly NotificationKey[]> {
    return readKeys(this.#homes, range, rowsMax);
  }

  async statuses(keys: readonly NotificationKey[]): Promise<readonly NotificationStatus[]> {
    const standings = await this.#homes.askAbout(keys, shardOfKey, ({ pool }, some) => readStatuses(pool, some));
    return inOrderOf(keys, standings);
  }

  async subjects(keys: readonly NotificationKey[]): Promise<ReadonlyMap<NotificationId, NotificationSubject>> {
    return new Map(
      await this.#homes.askAbout(keys, shardOfKey, async ({ pool }, some) => [...(await readSubjects(pool, some))]),
    );
  }

  async matching(keys: readonly NotificationKey[], match: SubjectMatch): Promise<readonly NotificationKey[]> {
    const matching = await this.#homes.askAbout(keys, shardOfKey, ({ pool }, some) => readMatching(pool, some, match));
    return inOrderOf(keys, matching);
  }

  keyUse(partnerId: PartnerId, sinceMs: number, rowsMax: number): Promise<readonly KeyUse[]> {
    return readKeyUse(this.#homes.of(partnerId).pool, partnerId, sinceMs, rowsMax);
  }

  attempts(key: NotificationKey, rowsMax: number): Promise<readonly RecordedAttempt[]> {
    return readAttempts(this.#homes.of(key.partnerId).pool, key, rowsMax);
  }

  events({ partnerId, id, transactionId }: NotificationStatus, rowsMax: number): Promise<readonly RecordedEvent[]> {
    return readEvents(
      this.#homes.of(partnerId).pool,
      partnerId,
      transactionId === null ? [id] : [id, transactionId],
      rowsMax,
    );
  }

  redeliver(
    partnerId: PartnerId,
    ids: readonly NotificationId[],
    to: "original" | "registered",
    redelivery?: RedeliveryId,
  ): Promise<ReadonlyMap<NotificationId, Held | null>> {
    return redeliverAll(this.#homes.of(partnerId).pool, this.#partitions, { partnerId, ids, to, redelivery });
  }

  async redeliveryCounts(id: RedeliveryId, partnerId: PartnerId | undefined): Promise<RedeliveryCounts | undefined> {
    const homes = partnerId === undefined ? this.#homes.all : [this.#homes.of(partnerId)];
    return sumOf(await Promise.all(homes.map(({ pool }) => countRedelivery(pool, id, partnerId))));
  }

  insertTest(test: TestNotification): Promise<void> {
    return insertTestNotification(this.#homes.of(test.partnerId).pool, test);
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
