import type { Pool } from "pg";
import type { ClearingCandidate } from "../../clearing/match.ts";
import type { ClearingLine } from "../../clearing/read-file.ts";
import type { ClearingFile, ClearingStore, MatchedLine, NewEntry } from "../../clearing/store.ts";
import { highestId, lowestId, newId, nilId, type PartnerId } from "../../ids.ts";
import type { NewEvent } from "../../telemetry/events.ts";
import { alongIndexes, queryAlongIndexes } from "../database/along-indexes.ts";
import type { Database } from "../database/database.ts";
import type { Home } from "../database/homes.ts";
import type { Connection, Statement } from "../database/statement.ts";
import { inTransaction } from "../database/transaction.ts";
import { insertEvents, serviceId } from "../events.ts";
import * as sql from "./sql.ts";

/** Clocks of instances differ by less: an id has the time of one, and completed_at that of the database. */
const clockSkewMs = 3_600_000;
const soonMs = 600_000;

/** Clearing files and the books that they are compared with, in PostgreSQL. */
export function postgresClearing(
  { pool, homes }: Pick<Database, "pool" | "homes">,
  { alerting }: { readonly alerting: boolean },
): ClearingStore {
  async function runAlongIndexes(statement: Statement<object>, values: readonly unknown[]): Promise<void> {
    const run = ({ pool }: Home) =>
      inTransaction(pool, (client) => statement.run(client, values), `BEGIN; ${alongIndexes}`);
    await Promise.all(homes.all.map(run));
  }

  /** In two steps, either of which may be repeated: a chunk whose recording failed is recorded again. */
  async function recordIn(
    { pool }: Home,
    acquirer: string,
    fileId: string,
    matched: readonly MatchedLine[],
    entries: readonly NewEntry[],
  ): Promise<readonly MatchedLine[]> {
    const others = await notMatched(pool, sql.match, fileId, matched);
    const lost = await notMatched(pool, sql.ownMatches, fileId, others);
    if (entries.length > 0) await inTransaction(pool, (client) => insertEntries(client, acquirer, entries));
    return lost;
  }

  /** @returns those whose line the statement does not return */
  async function notMatched(
    pool: Pool,
    statement: Statement<{ line_no: number }>,
    fileId: string,
    matched: readonly MatchedLine[],
  ): Promise<readonly MatchedLine[]> {
    if (matched.length === 0) return [];
    const rows = await statement.rows(pool, [
      matched.map((one) => one.with.partnerId),
      matched.map((one) => one.with.id),
      fileId,
      matched.map(({ line }) => line),
    ]);
    const returned = new Set(rows.map(({ line_no: line }) => line));
    return matched.filter(({ line }) => !returned.has(line));
  }

  async function insertEntries(client: Connection, acquirer: string, entries: readonly NewEntry[]): Promise<void> {
    const rows = entries.map((entry) => ({ ...entry, id: newId<"clearing">() }));
    const inserted = await sql.insertEntries.rows(client, [JSON.stringify(rows.map(rowOf))]);
    const isNew = new Set(inserted.map(({ id }) => id));
    const events = rows
      .filter(({ id, state }) => state === "open" && isNew.has(id))
      .map((row) => eventOf(acquirer, row));
    if (events.length > 0) await insertEvents(client, events, alerting);
  }

  async function files(rows: readonly sql.FileRow[]): Promise<readonly ClearingFile[]> {
    const counts = await homes.gather(({ pool }) => sql.counts.rows(pool, [rows.map(({ id }) => id)]));
    return rows.map((row) => {
      const count = (kind: string, isWaiting = false) =>
        counts
          .filter((one) => one.file_id === row.id && one.kind === kind && one.is_waiting === isWaiting)
          .reduce((sum, one) => sum + one.count, 0);
      return {
        ...row,
        waiting: count("missing_here", true),
        missingHere: count("missing_here"),
        missingThere: count("missing_there"),
        different: count("different"),
        fees: count("fee"),
        chargebacks: count("chargeback"),
      };
    });
  }

  const store: ClearingStore = {
    async addChunk(fileId, chunkNo, lines) {
      await sql.addChunk.run(pool, [fileId, chunkNo, JSON.stringify(lines)]);
    },

    async discard(fileId) {
      await pool.query("DELETE FROM clearing_chunks WHERE file_id = $1", [fileId]);
    },

    async add({ id, acquirer, sha256, name, lines, chunks, totals, firstDay }) {
      const values = [id, acquirer, sha256, name, lines, chunks, JSON.stringify(totals), firstDay];
      if ((await sql.addFile.run(pool, values)) === 1) return id;
      return (await sql.sameFile.first(pool, [acquirer, sha256]))?.id ?? id;
    },

    claim: (heldForMs) => sql.claim.first(pool, [heldForMs]),

    async chunk(fileId, chunkNo) {
      const text = "SELECT lines FROM clearing_chunks WHERE file_id = $1 AND chunk_no = $2";
      const { rows } = await pool.query<{ lines: string }>(text, [fileId, chunkNo]);
      return JSON.parse(rows[0]?.lines ?? "[]") as readonly ClearingLine[];
    },

    advance: async (fileId, from, matched, heldForMs) =>
      (await sql.advance.run(pool, [fileId, from, matched, heldForMs])) === 1,

    async end(fileId) {
      await store.discard(fileId);
      await pool.query("UPDATE clearing_files SET state = 'done', done_at = now() WHERE id = $1", [fileId]);
    },

    async copyBooks(acquirer, fromMs, beforeMs) {
      const span = [new Date(fromMs), new Date(beforeMs)];
      const ids = [lowestId(fromMs - soonMs - clockSkewMs), lowestId(beforeMs + clockSkewMs)];
      await runAlongIndexes(sql.copyBooks, [acquirer, ...ids, ...span]);
    },

    /** By reference first, because it names one transaction; then by trace number. */
    async candidates(acquirer, lines) {
      const found: ClearingCandidate[][] = lines.map(() => []);
      const look = async (text: string, nths: readonly number[]) => {
        if (nths.length === 0) return;
        const of = <Value>(value: (line: ClearingLine) => Value) =>
          nths.map((nth) => value(lines[nth] as ClearingLine));
        const values = [
          acquirer,
          nths,
          of(({ refId }) => refId),
          of(({ trace }) => trace),
          of(({ tid }) => tid),
          of(({ day, kind }) => (kind === "chargeback" ? "infinity" : day)),
        ];
        const rows = await homes.gather(({ pool }) => queryAlongIndexes<sql.CandidateRow>(pool, text, values));
        for (const { nth, completed_at: at, ...row } of rows) found[nth]?.push({ ...row, atMs: at.getTime() });
      };
      const all = [...lines.keys()];
      await look(
        sql.candidatesByRef,
        all.filter((nth) => lines[nth]?.refId !== ""),
      );
      await look(
        sql.candidatesByTrace,
        all.filter((nth) => found[nth]?.length === 0 && lines[nth]?.trace !== ""),
      );
      return found;
    },

    async record(acquirer, fileId, { matched, entries }) {
      const duplicates: MatchedLine[] = [];
      for (const home of homes.all) {
        const own = matched.filter((one) => homes.of(one.with.partnerId) === home);
        const listed = entries.filter(({ partnerId }) => homes.of(partnerId ?? serviceId) === home);
        if (own.length + listed.length > 0) duplicates.push(...(await recordIn(home, acquirer, fileId, own, listed)));
      }
      return duplicates;
    },

    async resolveFound(acquirer) {
      await runAlongIndexes(sql.resolveFound, [acquirer]);
    },

    watched: async () =>
      (await sql.watched.rows(pool)).map(({ acquirer, lastFileId, from, to, judged }) => {
        const judgedToMs = judged.getTime();
        return { acquirer, lastFileId, copiedFromMs: from.getTime(), copiedToMs: to.getTime(), judgedToMs };
      }),

    async watch(acquirer, change) {
      const { copiedFromMs, copiedToMs, judgedToMs } = change;
      const date = (ms: number | undefined) => (ms === undefined ? null : new Date(ms));
      await sql.watch.run(pool, [acquirer, date(copiedFromMs), date(copiedToMs), date(judgedToMs)]);
    },

    async missing(acquirer, fromMs, beforeMs, rowsMax) {
      const values = [acquirer, new Date(fromMs), new Date(beforeMs), rowsMax];
      const rows = await homes.gather(({ pool }) => sql.missing.rows(pool, values));
      return rows
        .map(({ nth: _, completed_at: at, ...row }) => ({ ...row, atMs: at.getTime() }))
        .sort((one, other) => one.atMs - other.atMs)
        .slice(0, rowsMax);
    },

    async waiting(acquirer, after, rowsMax) {
      const { pool } = homes.of(serviceId);
      const rows = await sql.waiting.rows(pool, [acquirer, after ?? nilId, rowsMax]);
      return rows.map(({ due, ...row }) => ({ ...row, dueAtMs: due.getTime() }));
    },

    /** Another instance may have found its transaction too: the one that ends it first counts it. */
    async endWaiting({ id, fileId }, matched) {
      const home = homes.of(serviceId);
      await inTransaction(home.pool, async (client) => {
        const text = "DELETE FROM clearing_entries WHERE partner_id = $1 AND id = $2";
        const { rowCount } = await client.query(text, [serviceId, id]);
        if (rowCount === 0 || matched === 0) return;
        // With Citus files are at the coordinator, and it still waits if it could not be counted there.
        const files = home.pool === pool ? client : pool;
        await files.query("UPDATE clearing_files SET matched = matched + $2 WHERE id = $1", [fileId, matched]);
      });
    },

    async openWaiting(acquirer, entries) {
      await inTransaction(homes.of(serviceId).pool, async (client) => {
        const rows = await sql.openWaiting.rows(client, [serviceId, entries.map(({ id }) => id)]);
        const isOpen = new Set(rows.map(({ id }) => id));
        const events = entries
          .filter(({ id }) => isOpen.has(id))
          .map(({ id, fileId, line }) =>
            eventOf(acquirer, {
              id,
              fileId,
              line,
              kind: "missing_here",
              partnerId: null,
              transactionId: null,
              differences: [],
            }),
          );
        if (events.length > 0) await insertEvents(client, events, alerting);
      });
    },

    file: async (id) => (await files(await sql.file.rows(pool, [id])))[0],

    files: async ({ acquirer, after, limit }) =>
      files(await sql.files.rows(pool, [acquirer ?? null, after ?? highestId, limit])),

    async exceptions({ state, acquirer, transaction, file, after, limit }) {
      const values = [state ?? null, acquirer ?? null, after ?? highestId, limit, transaction ?? null, file ?? null];
      const rows = await homes.gather(({ pool }) => sql.exceptions.rows(pool, values));
      return [...rows].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit);
    },

    exception: async (id) => (await homes.gather(({ pool }) => sql.exception.rows(pool, [id])))[0],

    resolve: async (id, reason) => (await homes.gather(({ pool }) => sql.resolve.rows(pool, [id, reason]))).length > 0,

    async dropOld(beforeMs) {
      const before = new Date(beforeMs);
      await sql.dropUnfinished.run(pool);
      for (const drop of sql.dropOldOfHome) await homes.gather(({ pool }) => drop.rows(pool, [before]));
      await pool.query("DELETE FROM clearing_files WHERE state = 'done' AND received_at < $1", [before]);
    },
  };
  return store;
}

function rowOf(entry: NewEntry & { readonly id: string }) {
  const { id, kind, state, acquirer, transactionId, fileId, line, differences, proof, dueAtMs } = entry;
  return {
    partner_id: entry.partnerId ?? serviceId,
    id,
    kind,
    state,
    acquirer,
    transaction_id: transactionId,
    file_id: fileId,
    line_no: line?.line ?? null,
    line,
    differences,
    proof,
    due_at: dueAtMs === null ? null : new Date(dueAtMs).toISOString(),
  };
}

type EntryOfEvent = Pick<NewEntry, "kind" | "fileId" | "line" | "partnerId" | "transactionId" | "differences"> & {
  readonly id: string;
};

function eventOf(
  acquirer: string,
  { id, kind, fileId, line, partnerId, transactionId, differences }: EntryOfEvent,
): NewEvent {
  const named = line === null ? {} : { line: line.line, refId: line.refId, day: line.day };
  const money = line === null ? {} : { minor: line.minor, currency: line.currency };
  const detail = { exception: kind, exceptionId: id, acquirer, fileId, ...named, ...money, differences };
  return { kind: "clearing_exception", partnerId: partnerId as PartnerId | null, subjectId: transactionId, detail };
}
