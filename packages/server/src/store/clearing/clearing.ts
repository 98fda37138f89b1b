import type { Pool } from "pg";
import type { ClearingCandidate } from "../../clearing/match.ts";
import type { ClearingLine } from "../../clearing/read-file.ts";
import type {
  ClaimedFile,
  ClearingException,
  ClearingFile,
  ClearingStore,
  ExceptionSearch,
  MatchedLine,
  NewClearingFile,
  NewEntry,
  Outcome,
  WaitingLine,
  WatchedAcquirer,
} from "../../clearing/store.ts";
import type { NewEvent } from "../../events.ts";
import { highestId, lowestId, newId, nilId, type PartnerId } from "../../ids.ts";
import { alongIndexes, queryAlongIndexes } from "../database/along-indexes.ts";
import type { Database } from "../database/database.ts";
import type { Home, Homes } from "../database/homes.ts";
import { inTransaction } from "../database/transaction.ts";
import { insertEvents, serviceId } from "../events.ts";
import * as sql from "./statements.ts";

/** Clocks of instances differ by less: an id has the time of one, and completed_at that of the database. */
const clockSkewMs = 3_600_000;
const soonMs = 600_000;

/** Clearing files and the books that they are compared with, in PostgreSQL. */
export class PostgresClearing implements ClearingStore {
  readonly #pool: Pool;
  readonly #homes: Homes;
  readonly #alerting: boolean;

  constructor({ pool, homes }: Pick<Database, "pool" | "homes">, { alerting }: { readonly alerting: boolean }) {
    this.#pool = pool;
    this.#homes = homes;
    this.#alerting = alerting;
  }

  async addChunk(fileId: string, chunkNo: number, lines: readonly ClearingLine[]): Promise<void> {
    await this.#pool.query(sql.addChunk, [fileId, chunkNo, JSON.stringify(lines)]);
  }

  async discard(fileId: string): Promise<void> {
    await this.#pool.query("DELETE FROM clearing_chunks WHERE file_id = $1", [fileId]);
  }

  async add({ id, acquirer, sha256, name, lines, chunks, totals, firstDay }: NewClearingFile): Promise<string> {
    const values = [id, acquirer, sha256, name, lines, chunks, JSON.stringify(totals), firstDay];
    const { rowCount } = await this.#pool.query(sql.addFile, values);
    if (rowCount === 1) return id;
    const { rows } = await this.#pool.query<{ id: string }>(sql.sameFile, [acquirer, sha256]);
    return rows[0]?.id ?? id;
  }

  async claim(heldForMs: number): Promise<ClaimedFile | undefined> {
    return (await this.#pool.query<ClaimedFile>(sql.claim, [heldForMs])).rows[0];
  }

  async chunk(fileId: string, chunkNo: number): Promise<readonly ClearingLine[]> {
    const text = "SELECT lines FROM clearing_chunks WHERE file_id = $1 AND chunk_no = $2";
    const { rows } = await this.#pool.query<{ lines: string }>(text, [fileId, chunkNo]);
    return JSON.parse(rows[0]?.lines ?? "[]") as readonly ClearingLine[];
  }

  async advance(fileId: string, from: number, matched: number, heldForMs: number): Promise<boolean> {
    return (await this.#pool.query(sql.advance, [fileId, from, matched, heldForMs])).rowCount === 1;
  }

  async end(fileId: string): Promise<void> {
    await this.discard(fileId);
    await this.#pool.query("UPDATE clearing_files SET state = 'done', done_at = now() WHERE id = $1", [fileId]);
  }

  async copyBooks(acquirer: string, fromMs: number, beforeMs: number): Promise<void> {
    const span = [new Date(fromMs), new Date(beforeMs)];
    const ids = [lowestId(fromMs - soonMs - clockSkewMs), lowestId(beforeMs + clockSkewMs)];
    await this.#alongIndexes(sql.copyBooks, [acquirer, ...ids, ...span]);
  }

  async #alongIndexes(statement: string, values: readonly unknown[]): Promise<void> {
    await Promise.all(
      this.#homes.all.map(({ pool }) =>
        inTransaction(pool, (client) => client.query(statement, [...values]), `BEGIN; ${alongIndexes}`),
      ),
    );
  }

  /** By reference first, because it names one transaction; then by trace number. */
  async candidates(
    acquirer: string,
    lines: readonly ClearingLine[],
  ): Promise<readonly (readonly ClearingCandidate[])[]> {
    const found: ClearingCandidate[][] = lines.map(() => []);
    const look = async (text: string, nths: readonly number[]) => {
      if (nths.length === 0) return;
      const of = <Value>(value: (line: ClearingLine) => Value) => nths.map((nth) => value(lines[nth] as ClearingLine));
      const values = [
        acquirer,
        nths,
        of(({ refId }) => refId),
        of(({ trace }) => trace),
        of(({ tid }) => tid),
        of(({ day, kind }) => (kind === "chargeback" ? "infinity" : day)),
      ];
      const rows = await this.#homes.gather(
        async ({ pool }) => (await queryAlongIndexes<CandidateRow>(pool, text, values)).rows,
      );
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
  }

  async record(acquirer: string, fileId: string, { matched, entries }: Outcome): Promise<readonly MatchedLine[]> {
    const twice: MatchedLine[] = [];
    for (const home of this.#homes.all) {
      const own = matched.filter((one) => this.#homes.of(one.with.partnerId) === home);
      const listed = entries.filter(({ partnerId }) => this.#homes.of(partnerId ?? serviceId) === home);
      if (own.length + listed.length > 0) twice.push(...(await this.#recordIn(home, acquirer, fileId, own, listed)));
    }
    return twice;
  }

  /** In two steps, either of which may be repeated: a chunk whose recording failed is recorded again. */
  async #recordIn(
    { pool }: Home,
    acquirer: string,
    fileId: string,
    matched: readonly MatchedLine[],
    entries: readonly NewEntry[],
  ): Promise<readonly MatchedLine[]> {
    const others = await this.#notMatched(pool, sql.match, fileId, matched);
    const lost = await this.#notMatched(pool, sql.ownMatches, fileId, others);
    if (entries.length > 0) await inTransaction(pool, (client) => this.#insertEntries(client, acquirer, entries));
    return lost;
  }

  /** @returns those whose line the statement does not return */
  async #notMatched(
    pool: Pool,
    statement: string,
    fileId: string,
    matched: readonly MatchedLine[],
  ): Promise<readonly MatchedLine[]> {
    if (matched.length === 0) return [];
    const { rows } = await pool.query<{ line_no: number }>(statement, [
      matched.map((one) => one.with.partnerId),
      matched.map((one) => one.with.id),
      fileId,
      matched.map(({ line }) => line),
    ]);
    const returned = new Set(rows.map(({ line_no: line }) => line));
    return matched.filter(({ line }) => !returned.has(line));
  }

  async #insertEntries(
    client: Parameters<Parameters<typeof inTransaction>[1]>[0],
    acquirer: string,
    entries: readonly NewEntry[],
  ): Promise<void> {
    const rows = entries.map((entry) => ({ ...entry, id: newId<"clearing">() }));
    const { rows: inserted } = await client.query<{ id: string }>(sql.insertEntries, [JSON.stringify(rows.map(rowOf))]);
    const isNew = new Set(inserted.map(({ id }) => id));
    const events = rows
      .filter(({ id, state }) => state === "open" && isNew.has(id))
      .map((row) => eventOf(acquirer, row));
    if (events.length > 0) await insertEvents(client, events, this.#alerting);
  }

  async resolveFound(acquirer: string): Promise<void> {
    await this.#alongIndexes(sql.resolveFound, [acquirer]);
  }

  async watched(): Promise<readonly WatchedAcquirer[]> {
    type Row = { acquirer: string; lastFileId: string; from: Date; to: Date; judged: Date };
    return (await this.#pool.query<Row>(sql.watched)).rows.map(({ acquirer, lastFileId, from, to, judged }) => {
      const judgedToMs = judged.getTime();
      return { acquirer, lastFileId, copiedFromMs: from.getTime(), copiedToMs: to.getTime(), judgedToMs };
    });
  }

  async watch(acquirer: string, change: Parameters<ClearingStore["watch"]>[1]): Promise<void> {
    const { copiedFromMs, copiedToMs, judgedToMs } = change;
    const date = (ms: number | undefined) => (ms === undefined ? null : new Date(ms));
    await this.#pool.query(sql.watch, [acquirer, date(copiedFromMs), date(copiedToMs), date(judgedToMs)]);
  }

  async missing(
    acquirer: string,
    fromMs: number,
    beforeMs: number,
    rowsMax: number,
  ): Promise<readonly ClearingCandidate[]> {
    const values = [acquirer, new Date(fromMs), new Date(beforeMs), rowsMax];
    const rows = await this.#homes.gather(
      async ({ pool }) => (await pool.query<CandidateRow>(sql.missing, values)).rows,
    );
    return rows
      .map(({ nth: _, completed_at: at, ...row }) => ({ ...row, atMs: at.getTime() }))
      .sort((one, other) => one.atMs - other.atMs)
      .slice(0, rowsMax);
  }

  async waiting(acquirer: string, after: string | undefined, rowsMax: number): Promise<readonly WaitingLine[]> {
    const { pool } = this.#homes.of(serviceId);
    const { rows } = await pool.query<{ id: string; fileId: string; line: ClearingLine; due: Date }>(sql.waiting, [
      acquirer,
      after ?? nilId,
      rowsMax,
    ]);
    return rows.map(({ due, ...row }) => ({ ...row, dueAtMs: due.getTime() }));
  }

  async endWaiting({ id, fileId }: WaitingLine, matched: number): Promise<void> {
    if (matched > 0) {
      await this.#pool.query("UPDATE clearing_files SET matched = matched + $2 WHERE id = $1", [fileId, matched]);
    }
    const { pool } = this.#homes.of(serviceId);
    await pool.query("DELETE FROM clearing_entries WHERE partner_id = $1 AND id = $2", [serviceId, id]);
  }

  async openWaiting(acquirer: string, entries: readonly WaitingLine[]): Promise<void> {
    await inTransaction(this.#homes.of(serviceId).pool, async (client) => {
      const { rows } = await client.query<{ id: string }>(sql.openWaiting, [serviceId, entries.map(({ id }) => id)]);
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
      if (events.length > 0) await insertEvents(client, events, this.#alerting);
    });
  }

  async file(id: string): Promise<ClearingFile | undefined> {
    return (await this.#files(sql.file, [id]))[0];
  }

  async files({
    acquirer,
    after,
    limit,
  }: {
    acquirer?: string | undefined;
    after?: string | undefined;
    limit: number;
  }) {
    return await this.#files(sql.files, [acquirer ?? null, after ?? highestId, limit]);
  }

  async #files(text: string, values: readonly unknown[]): Promise<readonly ClearingFile[]> {
    type Row = Omit<ClearingFile, "waiting" | "missingHere" | "missingThere" | "different" | "fees" | "chargebacks">;
    const { rows } = await this.#pool.query<Row>(text, [...values]);
    type Count = { file_id: string; kind: string; is_waiting: boolean; count: number };
    const counts = await this.#homes.gather(
      async ({ pool }) => (await pool.query<Count>(sql.counts, [rows.map(({ id }) => id)])).rows,
    );
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

  async exceptions({ state, acquirer, transaction, file, after, limit }: ExceptionSearch) {
    const values = [state ?? null, acquirer ?? null, after ?? highestId, limit, transaction ?? null, file ?? null];
    const rows = await this.#homes.gather(
      async ({ pool }) => (await pool.query<ClearingException>(sql.exceptions, values)).rows,
    );
    return [...rows].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit);
  }

  async exception(id: string): Promise<ClearingException | undefined> {
    const rows = await this.#homes.gather(
      async ({ pool }) => (await pool.query<ClearingException>(sql.exception, [id])).rows,
    );
    return rows[0];
  }

  async resolve(id: string, reason: string): Promise<boolean> {
    const rows = await this.#homes.gather(
      async ({ pool }) => (await pool.query<{ id: string }>(sql.resolve, [id, reason])).rows,
    );
    return rows.length > 0;
  }

  async dropOld(beforeMs: number): Promise<void> {
    const before = new Date(beforeMs);
    await this.#pool.query(sql.dropUnfinished);
    for (const text of sql.dropOldOfHome) {
      await this.#homes.gather(async ({ pool }) => (await pool.query(text, [before])).rows);
    }
    await this.#pool.query("DELETE FROM clearing_files WHERE state = 'done' AND received_at < $1", [before]);
  }
}

interface CandidateRow extends Omit<ClearingCandidate, "atMs"> {
  readonly nth: number;
  readonly completed_at: Date;
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
