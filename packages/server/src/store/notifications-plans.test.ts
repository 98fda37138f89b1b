import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type NotificationId, newId } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import { PostgresEvents } from "./events.ts";
import { type NotificationBench, openBench, registerPartner } from "./notifications.fixture.ts";

/** Tables of which a question may never read everything. The others have a few rows. */
const large = /^(notifications|attempts|pending|parked|transactions|events)/;

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly Plans?: readonly Plan[];
}

let bench: NotificationBench;
let partner: Partner;
let some: NotificationId;
/** What was asked of the store's pool, with its values. */
const asked: { text: string; values: unknown[] }[] = [];

/** The same pool, remembering the statements. */
function watched(pool: Pool): Pool {
  return new Proxy(pool, {
    get(target, name) {
      if (name !== "query") return Reflect.get(target, name, target);
      return (query: string | { text: string; values: unknown[] }, values: unknown[] = []) => {
        asked.push(typeof query === "string" ? { text: query, values } : { text: query.text, values: query.values });
        return typeof query === "string" ? target.query(query, values) : target.query(query);
      };
    },
  });
}

beforeAll(async () => {
  bench = await openBench(watched);
  // Statistics as they are when a service was just begun: every table looks empty.
  await bench.pool.query("ANALYZE");
  partner = await registerPartner(bench.pool, { callBackUrl: "https://partner.example/ipn" });
  for (let i = 0; i < 5; i += 1) await fill((await registerPartner(bench.pool)).id);
  some = await fill(partner.id);
});

beforeEach(() => {
  asked.length = 0;
});

afterAll(() => bench.close());

async function fill(partnerId: string): Promise<NotificationId> {
  const first = newId<"notification">();
  const id = "(left($2, 18) || '-8' || lpad(to_hex(i), 3, '0') || right($2, 13))::uuid";
  const each = "FROM generate_series(1, 4000) AS i";
  const values = [partnerId, first];
  await bench.pool.query(
    `INSERT INTO notifications (partner_id, id, chain_id, command, content) SELECT $1, ${id}, $1, 'SALE', '{"kind":"card","fields":{}}' ${each}`,
    values,
  );
  await bench.pool.query(
    `INSERT INTO attempts (partner_id, id, claim_no, attempt_no, instance_id, started_at, duration_ms, url)
     SELECT $1, ${id}, 1, 1, $1, now(), 1, '' ${each}`,
    values,
  );
  await bench.pool.query(
    `INSERT INTO transactions (partner_id, id, origin, command, state, req_id, chain_id, facts, notification_id)
     SELECT $1, ${id}, 'command', 'SALE', 'SUCCESS', i::text, $1, json_build_object('fields', json_build_object('merchantTransId', i::text)), ${id} ${each}`,
    values,
  );
  await bench.pool.query(
    `INSERT INTO pending (partner_id, id, chain_id, due_at, claim_no, bytes) SELECT $1, ${id}, $1, now(), 1, 9 ${each} WHERE i % 3 = 1`,
    values,
  );
  await bench.pool.query(
    `INSERT INTO parked (partner_id, id, chain_id, claim_no, attempts_made, bytes, reason)
     SELECT $1, ${id}, $1, 1, 1, 9, 'tls' ${each} WHERE i % 3 = 2`,
    values,
  );
  const { rows } = await bench.pool.query(
    `SELECT ${id} AS id FROM generate_series(3, 3) AS i, (SELECT $1::uuid) AS p`,
    values,
  );
  return rows[0].id;
}

/** Tables that hold rows and that a statement reads from end to end. */
async function readInFull(): Promise<string[]> {
  const found: string[] = [];
  for (const { text, values } of asked) {
    const { rows } = await bench.pool.query(`EXPLAIN (FORMAT JSON) ${text}`, values);
    const names = scans(rows[0]["QUERY PLAN"][0].Plan).filter((name) => large.test(name));
    for (const name of new Set(names)) {
      const size = await bench.pool.query("SELECT pg_relation_size($1) > 0 AS filled", [name]);
      if (size.rows[0].filled) found.push(`${name}: ${text.replaceAll(/\s+/g, " ").slice(0, 200)}`);
    }
  }
  return found;
}

function scans(plan: Plan): string[] {
  const below = (plan.Plans ?? []).flatMap(scans);
  const name = plan["Relation Name"];
  return plan["Node Type"] === "Seq Scan" && name !== undefined ? [name, ...below] : below;
}

describe.each(["when the tables looked empty", "of today"])("with statistics %s", (statistics) => {
  beforeAll(async () => {
    if (statistics === "of today") await bench.pool.query("ANALYZE");
  });

  test.each<[string, () => Promise<unknown>]>([
    ["a pulled page", () => bench.notifications.pull(partner, { limit: 100 })],
    ["a large pulled page", () => bench.notifications.pull(partner, { limit: 500 })],
    ["one notification", () => bench.notifications.find(some, partner.id)],
    ["one notification, whose partner is not told", () => bench.notifications.find(some)],
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
    ["an id of any kind, of any partner", () => bench.notifications.search({ q: some, limit: 50 })],
    ["a count of parked ones", () => bench.notifications.redeliverMany({ reason: "tls" }, "original", true)],
    ["due alerts", () => new PostgresEvents(watched(bench.pool)).takeDue(5, 40)],
  ])("%s is read along indexes", async (_, ask) => {
    await ask();
    expect(asked.length).toBeGreaterThan(0);
    expect(await readInFull()).toEqual([]);
  });

  test("a statement that reads a table from end to end is noticed", async () => {
    asked.push({ text: "SELECT count(*) FROM notifications WHERE command = 'VOID'", values: [] });
    expect(await readInFull()).toHaveLength(1);
  });
});

function anHourAgo(): string {
  return new Date(Date.now() - 3_600_000).toISOString();
}
