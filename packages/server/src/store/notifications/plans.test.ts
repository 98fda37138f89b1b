import type { Pool, PoolClient, QueryConfig } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type NotificationId, newId, nilId } from "../../ids.ts";
import type { HistoryPosition } from "../../notifications/store.ts";
import { postgresEvents } from "../events.ts";
import { openBench, registerPartner } from "./notifications.fixture.ts";

/** More than the largest page and its neighbours. Each partner below has several times as many rows. */
const rowsReadMax = 1_100;

interface Plan {
  readonly "Node Type": string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly Plan[];
}

/** The plan of each statement that ran. */
const carriedOut: { text: string; plan: Plan }[] = [];

/** The same pool, but it explains each statement, with its values, before it runs. */
function watched(pool: Pool): Pool {
  const explain = async (client: PoolClient, text: string, values: readonly unknown[]) => {
    const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, [...values]);
    carriedOut.push({ text, plan: rows[0]["QUERY PLAN"][0].Plan });
  };
  const aside = async (text: string, values: readonly unknown[]) => {
    const client = await pool.connect();
    await client.query("BEGIN");
    await explain(client, text, values);
    await client.query("ROLLBACK");
    client.release();
  };
  return overriding(pool, {
    query: async (query: string | QueryConfig, values: unknown[] = []) => {
      const { text, values: own = [] } = typeof query === "string" ? { text: query, values } : query;
      await aside(text, own);
      return pool.query(text, own);
    },
    connect: async () => {
      const client = await pool.connect();
      return overriding(client, {
        query: async (text: string, values?: unknown[]) => {
          if (values) await explain(client, text, values);
          return client.query(text, values);
        },
      });
    },
  });
}

function overriding<Of extends object>(of: Of, methods: Readonly<Record<string, unknown>>): Of {
  return new Proxy(of, {
    get(target, name) {
      if (typeof name === "string" && Object.hasOwn(methods, name)) return methods[name];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

const bench = await openBench(watched);
// Statistics as they are just after a service started: every table looks empty.
await bench.pool.query("ANALYZE");
const partner = await registerPartner(bench.pool, { callBackUrl: "https://partner.example/ipn" });
for (let i = 0; i < 5; i += 1) await fill((await registerPartner(bench.pool)).id);
const some = await fill(partner.id);
const { rows } = await bench.pool.query("SELECT id FROM pending WHERE partner_id = $1 LIMIT 1", [partner.id]);
const pendingOne = rows[0].id;

beforeEach(() => {
  carriedOut.length = 0;
});

afterAll(() => bench.close());

async function fill(partnerId: string): Promise<NotificationId> {
  const first = newId<"notification">();
  const id = "(left($2, 18) || '-8' || lpad(to_hex(i), 3, '0') || right($2, 13))::uuid";
  const each = "FROM generate_series(1, 4000) AS i";
  const values = [partnerId, first];
  await bench.pool.query(
    `INSERT INTO notifications (partner_id, id, chain_id, command, content)
       SELECT $1, ${id}, $1, 'SALE', '{"kind":"card","fields":{}}' ${each}`,
    values,
  );
  await bench.pool.query(
    `INSERT INTO attempts (partner_id, id, round, attempt_no, lease_id, started_at, duration_ms, url)
     SELECT $1, ${id}, 1, 1, $1, now(), 1, '' ${each}`,
    values,
  );
  await bench.pool.query(
    `INSERT INTO transactions (partner_id, id, origin, command, state, req_id, chain_id, facts, notification_id,
       merchant_trans_id)
     SELECT $1, ${id}, 'command', 'SALE', 'SUCCESS', i::text, $1,
       json_build_object('fields', json_build_object('merchantTransId', i::text)), ${id}, i::text ${each}`,
    values,
  );
  await bench.pool.query(
    `INSERT INTO pending (partner_id, id, chain_id, due_at, bytes)
       SELECT $1, ${id}, $1, now(), 9 ${each} WHERE i % 3 = 1`,
    values,
  );
  await bench.pool.query(
    `INSERT INTO parked (partner_id, id, chain_id, round, attempts_made, bytes, reason)
     SELECT $1, ${id}, $1, 1, 1, 9, 'tls' ${each} WHERE i % 3 = 2`,
    values,
  );
  await bench.pool.query(
    `INSERT INTO events (partner_id, id, kind, subject_id, detail) SELECT $1, ${id}, 'parked', ${id}, '{}' ${each}`,
    values,
  );
  const { rows } = await bench.pool.query(
    `SELECT ${id} AS id FROM generate_series(3, 3) AS i, (SELECT $1::uuid) AS p`,
    values,
  );
  return rows[0].id;
}

/** Statements with a step that read more rows than a page has. */
function readingTooMuch(): string[] {
  return carriedOut.filter(({ plan }) => rowsRead(plan) > rowsReadMax).map(({ text }) => text);
}

/** The rows of the step that read most. */
function rowsRead(plan: Plan): number {
  const own = (plan["Actual Rows"] + (plan["Rows Removed by Filter"] ?? 0)) * plan["Actual Loops"];
  return Math.max(own, ...(plan.Plans ?? []).map(rowsRead));
}

describe.each(["when the tables looked empty", "of today"])("with statistics %s", (statistics) => {
  beforeAll(async () => {
    if (statistics === "of today") await bench.pool.query("ANALYZE");
  });

  test.each<[string, () => Promise<unknown>]>([
    ["a pulled page", () => bench.notifications.pull(partner, { limit: 100 })],
    ["a large pulled page", () => bench.notifications.pull(partner, { limit: 500 })],
    ["what follows where somebody waits", () => bench.store.following(Array.from({ length: 500 }, () => beginning()))],
    ["one notification", () => bench.notifications.find(some, partner.id)],
    ["one notification, whose partner is not told", () => bench.notifications.find(some)],
    ["one notification, as the operator sees it", () => bench.notifications.inspect(some)],
    ["the newest of a partner", () => bench.notifications.search({ partnerId: partner.id, limit: 50 })],
    ["the newest of all", () => bench.notifications.search({ limit: 50 })],
    [
      "a partner's of an hour",
      () => bench.notifications.search({ partnerId: partner.id, limit: 50, from: anHourAgo() }),
    ],
    ["pending ones", () => bench.notifications.search({ state: "pending", limit: 50 })],
    ["parked ones", () => bench.notifications.search({ partnerId: partner.id, state: "parked", limit: 50 })],
    ["accepted ones", () => bench.notifications.search({ partnerId: partner.id, state: "accepted", limit: 50 })],
    ["a merchantTransId", () => bench.notifications.search({ partnerId: partner.id, q: "17", limit: 50 })],
    ["the beginning of a merchantTransId", () => bench.notifications.search({ q: "171", limit: 50 })],
    ["a terminal's, among the content", () => bench.notifications.search({ tid: "T1", limit: 50 })],
    ["a pending one, and why it waits", () => bench.notifications.find(pendingOne, partner.id)],
    ["an id of any kind, of any partner", () => bench.notifications.search({ q: some, limit: 50 })],
    [
      "a count of parked ones",
      () => bench.notifications.redeliverMany({ reason: "tls" }, { to: "original", dryRun: true }),
    ],
    ["due alerts", () => postgresEvents(bench.homes).claimDue(5, 40)],
  ])("%s reads no more than a page", async (_, ask) => {
    await ask();
    expect(carriedOut.length).toBeGreaterThan(0);
    expect(readingTooMuch()).toEqual([]);
  });

  test("a statement that reads more than a page is noticed", async () => {
    await watched(bench.pool).query("SELECT count(*) FROM notifications WHERE partner_id = $1", [partner.id]);
    expect(readingTooMuch()).toHaveLength(1);
  });
});

function beginning(): HistoryPosition {
  return { partnerId: partner.id, after: { xid: 0n, id: nilId } };
}

function anHourAgo(): string {
  return new Date(Date.now() - 3_600_000).toISOString();
}
