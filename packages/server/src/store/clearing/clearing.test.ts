import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { clearingSchema } from "../../acquirer/iso8583/profile/schema.ts";
import { Clearing } from "../../clearing/clearing.ts";
import type { ClearingLine } from "../../clearing/read-file.ts";
import type { ClearingStore } from "../../clearing/store.ts";
import { lowestId, newId, nilId } from "../../ids.ts";
import { createLog } from "../../telemetry/log.ts";
import { insertPartner } from "../rows.fixture.ts";
import { postgresClearing } from "./clearing.ts";

const connections = await openTestDatabase();
const lines = 2_500;
const nowMs = Date.UTC(2025, 10, 2);
const file = ["RRN,AMOUNT,DATE", ...Array.from({ length: lines }, (_, nth) => `R${nth},1,20251101`), ""].join("\n");
const columns = { refId: "RRN", amount: "AMOUNT", date: "DATE" };
const given = { format: "csv", header: true, columns, currency: "VND", daysMax: 60 };

function instance(change: Partial<ClearingStore> = {}, section = clearingSchema.parse(given)) {
  const store = postgresClearing(connections, { alerting: false });
  const changed = new Proxy<ClearingStore>(store, {
    get: (target, name: keyof ClearingStore) => change[name] ?? target[name].bind(target),
  });
  const clearing = new Clearing({
    store: changed,
    layoutOf: async () => ({ section, currencies: {}, timeZone: "UTC" }),
    prove: async () => undefined,
    nowMs: () => nowMs,
    log: createLog("fatal", { write: () => undefined }),
    keptDays: 30,
  });
  return {
    clearing,
    store,
    receive: (acquirer: string, text = file) => clearing.receive(acquirer, "a.csv", Readable.from([Buffer.from(text)])),
  };
}

test("a file that is received by two instances at once is one file", async () => {
  const never = { claim: async () => undefined };
  const [first, second] = await Promise.all([instance(never).receive("first"), instance(never).receive("first")]);
  expect(second).toBe(first);
  const { rows } = await connections.pool.query("DELETE FROM clearing_files RETURNING id");
  expect(rows).toEqual([{ id: first }]);
});

test("a file begins with its first payment, which a chargeback of an older one does not move", async () => {
  const never = { claim: async () => undefined };
  const kinds = { S: "sale", C: "chargeback" };
  const withKinds = clearingSchema.parse({ ...given, columns: { ...columns, kind: "TYPE" }, kinds });
  const text = "TYPE,RRN,AMOUNT,DATE\nC,R1,1,20251029\nS,R2,1,20251031\nS,R3,1,20251101\n";
  await instance(never, withKinds).receive("kinds", text);
  const { rows } = await connections.pool.query(
    "DELETE FROM clearing_files WHERE acquirer = 'kinds' RETURNING first_day::text AS day",
  );
  expect(rows).toEqual([{ day: "2025-10-31" }]);
});

test("what is done with one file, or old, leaves other files and exceptions as they are", async () => {
  const { store } = instance();
  const [ended, earlier, other] = [newId(), newId(), newId()];
  const of = (id: string, acquirer: string, sha256: string) => ({
    ...{ id, acquirer, sha256: Buffer.from(sha256), name: "a.csv", lines: 1, chunks: 1, totals: [] },
    firstDay: "2025-11-01",
  });
  for (const [id, acquirer, sha256] of [
    [ended, "one", "same"],
    [earlier, "another", "not the same"],
    [other, "another", "same"],
  ] as const) {
    await store.addChunk(id, 0, [{} as ClearingLine]);
    expect(await store.add(of(id, acquirer, sha256))).toBe(id);
  }
  expect(await store.add(of(newId(), "another", "same"))).toBe(other);
  await store.end(ended);
  expect([await store.chunk(ended, 0), await store.chunk(other, 0)]).toEqual([[], [{}]]);
  const stateOf = async (id: string) => (await store.file(id))?.state;
  expect([await stateOf(ended), await stateOf(other)]).toEqual(["done", "matching"]);
  const { rows } = await connections.pool.query<{ id: string }>(
    `INSERT INTO clearing_entries (partner_id, id, kind, state, acquirer, file_id, differences, created_at, resolved_at)
     SELECT $1, gen_random_uuid(), 'fee', state, 'one', $2, '[]', now() - made * interval '1 day',
       now() - ended * interval '1 day'
     FROM unnest(ARRAY['kept', 'resolved', 'open', 'waiting', 'kept', 'resolved', 'resolved'], ARRAY[2, 3, 2, 2, 0, 0, 2],
       ARRAY[NULL, 2, NULL, NULL, NULL, 0, 0]) AS e (state, made, ended)
     RETURNING id`,
    [nilId, ended],
  );
  // Of files that are not read to their end: one still is, the other was left by an instance that died.
  const [beginning, leftAlone] = [newId(), newId()];
  for (const id of [beginning, leftAlone]) await store.addChunk(id, 0, [{} as ClearingLine]);
  const longAgo = "UPDATE clearing_chunks SET read_at = now() - interval '25 hours' WHERE file_id = ANY ($1)";
  await connections.pool.query(longAgo, [[leftAlone, other]]);
  await store.dropOld(Date.now() - 86_400_000);
  const chunks = [beginning, leftAlone, other].map((id) => store.chunk(id, 0));
  expect(await Promise.all(chunks)).toEqual([[{}], [], [{}]]);
  await store.discard(beginning);
  expect(await store.file(ended)).toMatchObject({ state: "done", doneAt: expect.any(Date) });
  const left = await connections.pool.query("DELETE FROM clearing_entries RETURNING id");
  expect(left.rows).toEqual(rows.slice(2));
  await connections.pool.query("DELETE FROM clearing_files");
});

test("of a file that cannot be read to its end nothing is stored, not even what was on its way", async () => {
  const stored: Promise<string>[] = [];
  const slow = instance({
    async addChunk(id, ...chunk) {
      const adding = pause(20).then(() => slow.store.addChunk(id, ...chunk));
      stored.push(adding.then(() => id));
      await adding;
    },
  });
  await expect(slow.receive("third", `${file}R,none,20251101\n`)).rejects.toThrow("line 2502, column amount");
  const [id] = await Promise.all(stored);
  expect(id).toBeDefined();
  expect(await slow.store.chunk(id ?? "", 0)).toEqual([]);
  expect(await slow.store.chunk(id ?? "", stored.length - 1)).toEqual([]);
});

test("a file whose COMMIT had no answer has its lines, and is the same file when it comes again", async () => {
  const broken = instance({
    claim: async () => undefined,
    async add(file) {
      await broken.store.add(file);
      throw new Error("the connection ended");
    },
  });
  await expect(broken.receive("fourth")).rejects.toThrow("the connection ended");
  const id = await instance({ claim: async () => undefined }).receive("fourth");
  expect(await broken.store.chunk(id, 0)).toHaveLength(500);
  await connections.pool.query("DELETE FROM clearing_files");
});

test("a line that is recorded again matches its transaction once, and no other line matches it", async () => {
  const { store } = instance();
  const [one, file, another] = [{ partnerId: newId<"partner">(), id: newId<"transaction">() }, newId(), newId()];
  const record = (fileId: string, line: number) =>
    store.record("bank", fileId, { matched: [{ line, with: one }], entries: [] });
  expect([await record(file, 2), await record(file, 2)]).toEqual([[], []]);
  expect([await record(file, 3), await record(another, 2)]).toMatchObject([[{ line: 3 }], [{ line: 2 }]]);
});

test("a line that waited counts as matched once, also if two instances find it, or one could not count it", async () => {
  const { store } = instance();
  const [id, sha256] = [newId(), Buffer.from("waited")];
  const file = { id, acquirer: "bank", sha256, name: "a.csv", lines: 1, chunks: 1, totals: [], firstDay: "2025-11-01" };
  await store.add(file);
  const line = { line: 2, kind: "sale" } as ClearingLine;
  const waiting = { kind: "missing_here", state: "waiting", acquirer: "bank", fileId: id, line } as const;
  const about = { partnerId: null, transactionId: null, differences: [], proof: null, dueAtMs: nowMs };
  await store.record("bank", id, { matched: [], entries: [{ ...waiting, ...about }] });
  const [entry] = await store.waiting("bank", undefined, 10);
  if (entry === undefined) throw new Error("It does not wait.");
  await expect(store.endWaiting({ ...entry, fileId: "none" }, 1)).rejects.toThrow("uuid");
  await Promise.all([store.endWaiting(entry, 1), store.endWaiting(entry, 1)]);
  expect(await store.file(id)).toMatchObject({ matched: 1, waiting: 0 });
  await connections.pool.query("DELETE FROM clearing_files");
});

test("a line means what has its reference, otherwise what has its trace number on its terminal in its time", async () => {
  const { store } = instance();
  const partnerId = newId();
  const booked = async (refId: string, tid: string, day: string, acquirer = "bank") => {
    const id = newId();
    await connections.pool.query(
      `WITH made AS (
         INSERT INTO transactions (partner_id, id, origin, command, state, chain_id, facts)
         VALUES ($1, $2, 'command', 'SALE', 'SUCCESS', $2, '{}'))
       INSERT INTO clearing_books (partner_id, transaction_id, acquirer, ref_id, trace_no, tid, amount, currency,
         completed_at)
       VALUES ($1, $2, $3, $4, '000009', $5, '1', 'VND', $6)`,
      [partnerId, id, acquirer, refId, tid, day],
    );
    return id;
  };
  const [first, second] = [await booked("R1", "T1", "2025-11-01"), await booked("R2", "T2", "2025-11-01")];
  const [early, late] = [await booked("", "T1", "2025-09-20"), await booked("", "T1", "2025-11-06")];
  await booked("R1", "T1", "2025-11-01", "another");
  const line = (change: Partial<ClearingLine>) =>
    ({ kind: "sale", refId: "", trace: "000009", tid: "T1", day: "2025-11-01", ...change }) as ClearingLine;
  const found = await store.candidates("bank", [
    line({ refId: "R2" }),
    line({ refId: "R9" }),
    line({ tid: "" }),
    line({ trace: "", tid: "" }),
    line({ day: "2025-11-03" }),
    line({ kind: "chargeback" }),
  ]);
  const both = [first, second].toSorted();
  expect(found.map((all) => all.map(({ id }) => id as string).toSorted())).toEqual([
    [second],
    [first],
    both,
    [],
    [first, late].toSorted(),
    [first, early, late].toSorted(),
  ]);
});

test("the books have what completed in their time, however long that took, and whoever assigned its id", async () => {
  const { store } = instance();
  const [partnerId, fromMs] = [await insertPartner(connections.pool), Date.UTC(2025, 10, 1, 12)];
  const completed = async (beganMs: number, endedMs: number, id: string = lowestId(beganMs)) => {
    await connections.pool.query(
      `INSERT INTO transactions (partner_id, id, origin, command, state, chain_id, facts, acquirer, req_id, created_at,
         completed_at)
       VALUES ($1, $2::uuid, 'command', 'SALE', 'SUCCESS', $2::uuid, '{"fields":{}}', 'books', $2::text, $3, $4)`,
      [partnerId, id, new Date(beganMs), new Date(endedMs)],
    );
    return id;
  };
  const soon = await completed(fromMs - 1_000, fromMs);
  const slow = await completed(fromMs - 86_400_000, fromMs + 1);
  const untimed = await completed(fromMs, fromMs + 2, randomUUID());
  await completed(fromMs - 2_000, fromMs - 1);
  await completed(fromMs + 3, fromMs + 3_600_000);
  await store.copyBooks("books", fromMs, fromMs + 3_600_000);
  await store.copyBooks("books", fromMs, fromMs + 3_600_000);
  const text = "SELECT transaction_id AS id FROM clearing_books WHERE partner_id = $1 ORDER BY completed_at";
  expect((await connections.pool.query(text, [partnerId])).rows.map(({ id }) => id)).toEqual([soon, slow, untimed]);
});

test("a charge that stands only after its days is missing as long after that", async () => {
  const { store } = instance();
  const [partnerId, id] = [newId(), newId()];
  await connections.pool.query(
    `WITH made AS (
       INSERT INTO transactions (partner_id, id, origin, command, state, reversal_state, chain_id, facts)
       VALUES ($1, $2, 'command', 'SALE', 'SUCCESS', 'stands', $2, '{}')),
     stood AS (
       INSERT INTO reversals (partner_id, transaction_id, tid, state, stood_at)
       VALUES ($1, $2, 'T1', 'STANDS', '2025-11-05Z'))
     INSERT INTO clearing_books (partner_id, transaction_id, acquirer, ref_id, trace_no, tid, amount, currency,
       completed_at)
     VALUES ($1, $2, 'late', '', '000009', 'T1', '1', 'VND', '2025-11-01Z')`,
    [partnerId, id],
  );
  const missing = async (acquirer: string, fromDay: number, beforeDay: number) =>
    await store.missing(acquirer, Date.UTC(2025, 10, fromDay), Date.UTC(2025, 10, beforeDay), 10);
  // Its time is that of the span, behind which the next page begins.
  expect(await missing("late", 5, 6)).toMatchObject([{ id, atMs: Date.UTC(2025, 10, 5) }]);
  expect(await missing("late", 1, 2)).toMatchObject([{ id, atMs: Date.UTC(2025, 10, 1) }]);
  expect(await missing("late", 2, 5)).toEqual([]);
  expect(await missing("another", 5, 6)).toEqual([]);
});

test("an instance that lost a file at its last lines does not end it", async () => {
  const ended: string[] = [];
  let [claims, last] = [0, 0];
  const { clearing, receive, store } = instance({
    async advance(_, from) {
      if (from < last) return true;
      clearing.wake();
      return false;
    },
    async claim(heldForMs) {
      claims += 1;
      const claimed = claims > 1 ? undefined : await store.claim(heldForMs);
      last = (claimed?.chunks ?? 1) - 1;
      return claimed;
    },
    end: async (id) => void ended.push(id),
  });
  await receive("third");
  await expect.poll(() => claims).toBe(2);
  await clearing.stop();
  expect(ended).toEqual([]);
  await connections.pool.query("DELETE FROM clearing_files");
});

test("files of one bank are matched one after the other, and wait for no other bank's", async () => {
  const { clearing, receive, store } = instance({ claim: async () => undefined });
  onTestFinished(async () => {
    await clearing.stop();
    await connections.pool.query("DELETE FROM clearing_files");
  });
  const [first, , other] = [
    await receive("first"),
    await receive("first", `${file}R,1,20251101\n`),
    await receive("other"),
  ];
  expect([await store.claim(60_000), await store.claim(60_000), await store.claim(60_000)]).toEqual([
    expect.objectContaining({ id: first }),
    expect.objectContaining({ id: other }),
    undefined,
  ]);
});

test("a file whose instance died is matched on by another, and each of its lines counts once", async () => {
  let recorded = 0;
  const died = Promise.withResolvers<void>();
  const { store, receive } = instance({
    async record(...given) {
      const twice = await store.record(...given);
      recorded += 1;
      if (recorded < 2) return twice;
      died.resolve();
      // Recorded, and not yet noted as matched.
      throw new Error("killed");
    },
  });
  const id = await receive("second");
  await died.promise;
  expect(await store.file(id)).toMatchObject({ state: "matching", waiting: 1_000 });
  const copiedFromMs: number[] = [];
  const other = instance({ copyBooks: async (_, fromMs) => void copiedFromMs.push(fromMs) });
  expect(await other.store.claim(60_000)).toBeUndefined();
  const noted = async () => (await connections.pool.query("SELECT next_chunk AS next FROM clearing_files")).rows;
  await expect.poll(noted).toEqual([{ next: 1 }]);
  await connections.pool.query("UPDATE clearing_files SET due_at = now()");
  const [claimed] = [await other.store.claim(0)];
  expect(claimed).toMatchObject({ id, nextChunk: 1, chunks: 5 });
  other.clearing.wake();
  await expect.poll(async () => await store.file(id)).toMatchObject({ state: "done", waiting: lines });
  // A result is visible a moment after the time that it has.
  expect(copiedFromMs).toContain(nowMs - 600_000);
  // Until its lines are overdue, a transaction of the days before may still be in a file.
  expect(await store.watched()).toMatchObject([{ judgedToMs: Date.UTC(2025, 10, 1) + 600_000 }]);
  // What the dead one would note as matched does not count any more.
  expect(await store.advance(id, 1, 1, 0)).toBe(false);
  await other.clearing.stop();
});

test("an instance that stops while it looks for what no file has leaves that to be judged", async () => {
  const stopped = Promise.withResolvers<Promise<void>>();
  const watched: Parameters<ClearingStore["watch"]>[1][] = [];
  const { clearing, receive, store } = instance({
    async watch(...given) {
      watched.push(given[1]);
      await store.watch(...given);
    },
    async missing() {
      stopped.resolve(clearing.stop());
      return [];
    },
  });
  await receive("fourth");
  await await stopped.promise;
  // Copied, and not judged further.
  expect(watched.filter(({ copiedToMs }) => copiedToMs === undefined)).toEqual([]);
});

test("a line of a day that has not come holds up no file, and what no file has is looked for all the same", async () => {
  const { clearing, receive, store } = instance();
  const id = await receive("ahead", "RRN,AMOUNT,DATE\nR1,1,99991230\n");
  await expect.poll(async () => (await store.file(id))?.state).toBe("done");
  await clearing.stop();
  expect(await store.file(id)).toMatchObject({ waiting: 1 });
  const [watched] = (await store.watched()).filter(({ acquirer }) => acquirer === "ahead");
  expect(watched).toMatchObject({ copiedFromMs: Date.UTC(2025, 9, 30), judgedToMs: nowMs + 600_000 });
});
