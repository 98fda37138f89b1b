import { setTimeout as pause } from "node:timers/promises";
import type { Pool } from "pg";
import type { ContentMac, FixedContent } from "../../delivery/attempt/content-mac.ts";
import { lowestId, nilId } from "../../ids.ts";
import type { Home, Homes } from "../database/homes.ts";
import { daysOfAny, idsOfDay } from "../schema/partitions.ts";

export interface ContentSealingParts {
  readonly pool: Pool;
  readonly homes: Homes;
  readonly contents: Pick<ContentMac, "of" | "requiredSince">;
}

const pageRows = 500;
/** As stored, which is compressed. */
const pageBytes = 1_024 * 1_024;

const columns = `r.partner_id AS "partnerId", r.id, r.command, r.callback_url AS "callBackUrl", r.content::text,
  r.original_id AS "originalId",
  CASE WHEN r.original_id IS NULL THEN r.original_external_id END AS "originalExternalId"`;

/** The next rows without a MAC, as many as fit into a page; at least one. */
const nextOf = (rows: string) => `
  SELECT ${columns} FROM (
    SELECT n.*, sum(pg_column_size(n.content)) OVER (ORDER BY n.partner_id, n.id) - pg_column_size(n.content)
      AS bytes_before
    FROM (${rows} ORDER BY partner_id, id LIMIT ${pageRows}) AS n) AS r
  WHERE r.bytes_before < ${pageBytes} ORDER BY r.partner_id, r.id`;

const inHistory = nextOf(
  `SELECT partner_id, id, command, callback_url, content, original_id, original_external_id FROM notifications
   WHERE id >= $1 AND id < $2 AND (partner_id, id) > ($3, $4) AND content_mac IS NULL`,
);

const inParked = nextOf(
  `SELECT partner_id, id, notification ->> 'command' AS command, notification ->> 'callback_url' AS callback_url,
     notification ->> 'content' AS content, (notification ->> 'original_id')::uuid AS original_id,
     notification ->> 'original_external_id' AS original_external_id
   FROM parked
   WHERE notification IS NOT NULL AND id >= $1 AND id < $2 AND (partner_id, id) > ($3, $4)
     AND notification ->> 'content_mac' IS NULL`,
);

const sealParked = `
  UPDATE parked d SET notification = d.notification || jsonb_build_object('content_mac', i.mac)
  FROM unnest($3::uuid[], $4::uuid[], $5::bytea[]) AS i (partner_id, id, mac)
  WHERE d.partner_id = i.partner_id AND d.id = i.id AND d.id >= $1 AND d.id < $2 AND d.notification IS NOT NULL`;

/**
 * Gives each notification of an older version a MAC, once the database is sealed. From then on one without a MAC is
 * refused, whatever its id says about its time. A new database has none, so it begins like that.
 */
export class ContentSealing {
  readonly #parts: ContentSealingParts;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #isDone = false;

  constructor(parts: ContentSealingParts) {
    this.#parts = parts;
  }

  /** Called at the start and every hour; it continues after an interruption. */
  run(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Ends after the page under way. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    // Its caller has the error.
    await this.#running?.catch(() => undefined);
  }

  async #run(): Promise<void> {
    const { pool, homes, contents } = this.#parts;
    if (this.#isDone) return;
    const { rows } = await pool.query<{ sealed_at: Date; contents_at: Date | null }>(
      "SELECT sealed_at, contents_at FROM sealing",
    );
    const [mark] = rows;
    if (mark === undefined) return;
    if (mark.contents_at === null) {
      const beyond = lowestId(mark.sealed_at.getTime());
      // Until a pass finds none: one may have been moved between history and parked meanwhile.
      for (let found = 1; found > 0; ) {
        found = 0;
        for (const home of homes.all) found += await this.#sealHome(home, beyond);
        if (this.#stopping.signal.aborted) return;
      }
      await pool.query("SELECT contents_are_sealed()");
    }
    contents.requiredSince(Number.NEGATIVE_INFINITY);
    this.#isDone = true;
  }

  async #sealHome(home: Home, beyond: string): Promise<number> {
    let found = await this.#sealPages(home.pool, inParked, home.pool, sealParked, [nilId, beyond]);
    for (const day of await daysOfAny(home)) {
      const [from, to] = idsOfDay(day);
      const ids = [from, to < beyond ? to : beyond] as const;
      const sealContents = "SELECT seal_contents($1, $2, $3, $4, $5)";
      if (from < beyond) found += await this.#sealPages(home.pool, inHistory, home.ddl, sealContents, ids);
    }
    return found;
  }

  /** As much time passes without work as with it: this is not urgent. */
  async #sealPages(
    reads: Pool,
    page: string,
    writes: Pool,
    write: string,
    ids: readonly [string, string],
  ): Promise<number> {
    const { signal } = this.#stopping;
    let found = 0;
    let after = [nilId, nilId];
    while (!signal.aborted) {
      const beganMs = performance.now();
      const { rows } = await reads.query<FixedContent>(page, [...ids, ...after]);
      const last = rows.at(-1);
      if (last === undefined) break;
      const macs = rows.map((row) => this.#parts.contents.of(row));
      await writes.query(write, [...ids, rows.map((row) => row.partnerId), rows.map((row) => row.id), macs]);
      found += rows.length;
      after = [last.partnerId, last.id];
      await pause(performance.now() - beganMs, undefined, { signal }).catch(() => undefined);
    }
    return found;
  }
}
