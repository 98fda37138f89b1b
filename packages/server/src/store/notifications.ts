import type { Pool } from "pg";
import { firstId, type Position } from "../delivery/cursor.ts";
import type {
  Following,
  KeyRange,
  NotificationContent,
  NotificationKey,
  NotificationStanding,
  NotificationStore,
  NotificationSubject,
  PageRow,
  Place,
  RecordedAttempt,
  RecordedEvent,
  Redelivered,
  SubjectMatch,
  TestNotification,
  WaitingFor,
} from "../delivery/notifications-store.ts";
import type { NotificationId, PartnerId } from "../ids.ts";
import { readEvents } from "./events.ts";
import { readContents, readFollowing, readHistory, readPage } from "./notifications-page.ts";
import { insertTestNotification, redeliverAll } from "./notifications-redeliver.ts";
import { locateKey, lookUpKeys, readKeys } from "./notifications-search.ts";
import { readAttempts, readStandings } from "./notifications-standing.ts";
import { readMatching, readSubjects } from "./notifications-subject.ts";
import { readWaiting } from "./notifications-waiting.ts";
import type { Partitions } from "./partitions.ts";

/** The history of notifications in PostgreSQL. */
export class PostgresNotifications implements NotificationStore {
  readonly #pool: Pool;
  readonly #partitions: Pick<Partitions, "ensureDays">;

  constructor(pool: Pool, partitions: Pick<Partitions, "ensureDays">) {
    this.#pool = pool;
    this.#partitions = partitions;
  }

  history(): ReturnType<NotificationStore["history"]> {
    return readHistory(this.#pool);
  }

  page(
    partnerId: PartnerId,
    after: Position | undefined,
    horizon: bigint,
    rowsMax: number,
  ): Promise<readonly PageRow[]> {
    return readPage(this.#pool, partnerId, after ?? { xid: 0n, id: firstId }, horizon, rowsMax);
  }

  following(places: readonly Place[]): Promise<readonly Following[]> {
    return readFollowing(this.#pool, places);
  }

  contents(
    partnerId: PartnerId,
    ids: readonly NotificationId[],
  ): Promise<ReadonlyMap<NotificationId, NotificationContent>> {
    return readContents(this.#pool, partnerId, ids);
  }

  async partnerIds(): Promise<readonly PartnerId[]> {
    const { rows } = await this.#pool.query<{ id: PartnerId }>("SELECT id FROM partners ORDER BY id");
    return rows.map((row) => row.id);
  }

  locate(id: NotificationId, partnerId?: PartnerId): Promise<NotificationKey | undefined> {
    return locateKey(this.#pool, id, partnerId);
  }

  lookUp(q: string, partnerId: PartnerId | undefined, rowsMax: number): Promise<readonly NotificationKey[]> {
    return lookUpKeys(this.#pool, q, partnerId, rowsMax);
  }

  keys(range: KeyRange, rowsMax: number): Promise<readonly NotificationKey[]> {
    return readKeys(this.#pool, range, rowsMax);
  }

  standings(keys: readonly NotificationKey[]): Promise<readonly NotificationStanding[]> {
    return readStandings(this.#pool, keys);
  }

  subjects(keys: readonly NotificationKey[]): Promise<ReadonlyMap<NotificationId, NotificationSubject>> {
    return readSubjects(this.#pool, keys);
  }

  matching(keys: readonly NotificationKey[], match: SubjectMatch): Promise<readonly NotificationKey[]> {
    return readMatching(this.#pool, keys, match);
  }

  waiting(key: NotificationKey): Promise<WaitingFor | undefined> {
    return readWaiting(this.#pool, key);
  }

  attempts(key: NotificationKey, rowsMax: number): Promise<readonly RecordedAttempt[]> {
    return readAttempts(this.#pool, key, rowsMax);
  }

  events({ partnerId, id, transactionId }: NotificationStanding, rowsMax: number): Promise<readonly RecordedEvent[]> {
    return readEvents(this.#pool, partnerId, transactionId === null ? [id] : [id, transactionId], rowsMax);
  }

  redeliver(
    partnerId: PartnerId,
    ids: readonly NotificationId[],
    to: "original" | "registered",
  ): Promise<ReadonlyMap<NotificationId, Redelivered>> {
    return redeliverAll(this.#pool, this.#partitions, partnerId, ids, to);
  }

  insertTest(test: TestNotification): Promise<void> {
    return insertTestNotification(this.#pool, test);
  }
}
