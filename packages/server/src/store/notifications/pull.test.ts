import { openAndVerify, webhookSignatureMatches } from "@paybell/contract";
import fc from "fast-check";
import type { PoolClient } from "pg";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { idTimeMs } from "../../ids.ts";
import { type Cursor, readCursor, writeCursor } from "../../notifications/cursor.ts";
import { type PulledPage, pullPage } from "../../notifications/pull.ts";
import type { Partner } from "../../partners/partner.ts";
import { sampleFacts } from "../rows.fixture.ts";
import { insertNotification, openBench, registerPartner } from "./notifications.fixture.ts";

let partner: Partner;

const bench = await openBench();

beforeEach(async () => {
  partner = await registerPartner(bench.pool);
  await bench.pool.query("UPDATE history SET kept_from = 'epoch'");
});

afterAll(() => bench.close());

let writersOpen = 0;

/** Other tests share the server, and their transactions hold the horizon back as ours do, so it is awaited. */
async function settled(): Promise<void> {
  const { rows } = await bench.pool.query<{ xid: string }>("SELECT pg_current_xact_id()::text AS xid");
  const mark = BigInt(rows[0]?.xid ?? 0);
  while ((await bench.store.history(partner.id)).horizon <= mark);
}

async function pull(after?: string, limit = 100): Promise<PulledPage> {
  if (writersOpen === 0) await settled();
  return bench.notifications.pull(partner, { ...(after !== undefined && { after }), limit });
}

async function pullAll(limit: number, after?: string): Promise<{ ids: string[]; next: string; pages: number }> {
  const ids: string[] = [];
  let next = after;
  for (let pages = 1; ; pages += 1) {
    const page = await pull(next, limit);
    ids.push(...page.items.map((item) => item.id));
    next = page.next;
    if (page.items.length === 0) return { ids, next, pages };
  }
}

async function opened(): Promise<PoolClient> {
  const client = await bench.pool.connect();
  await client.query("BEGIN");
  writersOpen += 1;
  return client;
}

async function ended(client: PoolClient, how: "COMMIT" | "ROLLBACK"): Promise<void> {
  await client.query(how);
  client.release();
  writersOpen -= 1;
}

describe("the pull of notifications", () => {
  test("shows each of the partner's own once, page by page, and goes on where it ended", async () => {
    const other = await registerPartner(bench.pool);
    const first: string[] = [];
    for (let i = 0; i < 7; i += 1) {
      first.push(await insertNotification(bench.pool, partner.id));
      await insertNotification(bench.pool, other.id);
    }
    const { ids, next, pages } = await pullAll(3);
    expect(ids).toEqual(first);
    expect(pages).toBe(4);
    const later = await insertNotification(bench.pool, partner.id);
    expect((await pullAll(3, next)).ids).toEqual([later]);
  });

  test("never skips one that began first and was committed last", async () => {
    const slow = await opened();
    const a = await insertNotification(slow, partner.id);
    const b = await insertNotification(bench.pool, partner.id);
    const before = await pull();
    expect(before.items).toEqual([]);
    await ended(slow, "COMMIT");
    const { ids } = await pullAll(1, before.next);
    expect(ids).toEqual([a, b]);
  });

  test("never skips one whose id is smaller than what was read already", async () => {
    const early = await opened();
    const late = await opened();
    await late.query("SELECT pg_current_xact_id()");
    const a = await insertNotification(early, partner.id);
    await ended(early, "COMMIT");
    const seen = await pull();
    const b = await insertNotification(late, partner.id);
    await ended(late, "COMMIT");
    expect((await pullAll(10, seen.next)).ids.toSorted()).toEqual([a, b].toSorted());
  });

  test("shows each once, whatever the order in which writers begin, write, commit and roll back", async () => {
    const step = fc.record({
      writer: fc.nat({ max: 3 }),
      what: fc.constantFrom("write", "commit", "rollback", "pull"),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 5, maxLength: 40 }),
        fc.integer({ min: 1, max: 3 }),
        async (steps, limit) => {
          partner = await registerPartner(bench.pool);
          const writers = new Map<number, { client: PoolClient; ids: string[] }>();
          const committed: string[] = [];
          const seen: string[] = [];
          let next: string | undefined;
          const end = async (of: number, how: "COMMIT" | "ROLLBACK") => {
            const writer = writers.get(of);
            if (writer === undefined) return;
            writers.delete(of);
            await ended(writer.client, how);
            if (how === "COMMIT") committed.push(...writer.ids);
          };
          for (const { writer, what } of steps) {
            if (what === "pull") {
              const page = await pull(next, limit);
              seen.push(...page.items.map((item) => item.id));
              next = page.next;
            } else if (what === "write") {
              const at = writers.get(writer) ?? { client: await opened(), ids: [] };
              writers.set(writer, at);
              at.ids.push(await insertNotification(at.client, partner.id));
            } else await end(writer, what === "commit" ? "COMMIT" : "ROLLBACK");
          }
          for (const writer of [...writers.keys()]) await end(writer, "COMMIT");
          seen.push(...(await pullAll(limit, next)).ids);
          expect(seen.toSorted()).toEqual(committed.toSorted());
        },
      ),
      { numRuns: 25 },
    );
  });

  test("leaves out what somebody changed, and goes on behind it", async () => {
    const changed = await insertNotification(bench.pool, partner.id);
    const good = await insertNotification(bench.pool, partner.id);
    await bench.pool.query("UPDATE notifications SET content_mac = '\\x00' WHERE id = $1", [changed]);
    const page = await pull(undefined, 1);
    expect(page.items.map(({ id }) => id)).toEqual([good]);
    expect((await pull(page.next, 1)).items).toEqual([]);
  });

  test("seals each as it would be sent now, and says where it stands", async () => {
    const ids = [
      await insertNotification(bench.pool, partner.id, { state: "accepted" }),
      await insertNotification(bench.pool, partner.id, { state: "pending" }),
      await insertNotification(bench.pool, partner.id, { state: "parked" }),
    ];
    const { items } = await pull();
    expect(items.map(({ id, state, kind }) => ({ id, state, kind }))).toEqual([
      { id: ids[0], state: "accepted", kind: "card" },
      { id: ids[1], state: "pending", kind: "card" },
      { id: ids[2], state: "parked", kind: "card" },
    ]);
    for (const { id, data, headers } of items) {
      const body = JSON.stringify({ data });
      const { settings, keys } = partner;
      const { ipn } = openAndVerify(body, {
        sealing: settings,
        signing: settings.signing,
        encryptionKeys: [keys.encryption],
        signingKeys: [keys.signing.key],
      });
      expect(ipn).toMatchObject({ id, amount: "150000", transaction_type: "SALE" });
      const signature = headers["webhook-signature"] ?? "";
      const webhookKeys = keys.webhook.map(({ key }) => key);
      expect(webhookSignatureMatches(signature, id, headers["webhook-timestamp"] ?? "", body, webhookKeys)).toBe(true);
      expect(headers).toMatchObject({ "webhook-id": id, "paybell-command": "SALE" });
    }
    // The parked one was attempted twice.
    expect(items.map(({ headers }) => headers["paybell-attempt"])).toEqual(["1", "1", "3"]);
  });

  test("holds fewer items when they are large, and one that is larger than a page stands alone", async () => {
    const content = (megabytes: number) =>
      JSON.stringify(
        sampleFacts({
          extraData: Buffer.from(crypto.getRandomValues(new Uint8Array(65_536)))
            .toString("hex")
            .repeat(megabytes * 8),
        }),
      );
    const sizes = [2, 2, 9, 1];
    const ids: string[] = [];
    for (const size of sizes) ids.push(await insertNotification(bench.pool, partner.id, { content: content(size) }));
    const pages: string[][] = [];
    let next: string | undefined;
    for (let items: readonly { id: string }[] = [{ id: "" }]; items.length > 0; ) {
      const page = await pull(next);
      next = page.next;
      items = page.items;
      pages.push(items.map((item) => item.id));
    }
    expect(pages).toEqual([[ids[0], ids[1]], [ids[2]], [ids[3]], []]);
  });

  test("resolves an original that only the switch's id names, and no other partner's", async () => {
    const id = await insertNotification(bench.pool, partner.id, { command: "VOID" });
    const other = await registerPartner(bench.pool);
    const { rows } = await bench.pool.query(
      `INSERT INTO transactions (partner_id, id, origin, command, state, external_id, chain_id, facts)
       SELECT p, gen_random_uuid(), 'switch', 'SALE', 'SUCCESS', 'X-1', gen_random_uuid(), '{}'
       FROM unnest($1::uuid[]) AS p RETURNING id`,
      [[partner.id, other.id]],
    );
    await bench.pool.query("UPDATE notifications SET original_external_id = 'X-1' WHERE id = $1", [id]);
    const { items } = await pull();
    expect(items[0]?.headers["paybell-original-transaction"]).toBe(rows[0].id);
  });
});

test("a partner's backlog is its own, with its oldest and the last of its pulls", async () => {
  const { pool, store } = bench;
  const other = await registerPartner(pool);
  for (const { id } of [other, partner]) {
    await insertNotification(pool, id, { state: "parked" });
    for (const cursor of ["first", `last of ${id}`]) {
      await store.notePull(id, cursor);
      if (cursor === "first") await pool.query("UPDATE pulls SET at = 'epoch'");
    }
  }
  const oldest = await insertNotification(pool, partner.id, { state: "pending" });
  await insertNotification(pool, partner.id, { state: "pending" });
  expect(await store.backlog(partner.id)).toEqual({
    ...{ pending: 2, oldestPendingMs: idTimeMs(oldest), parked: 1 },
    pull: { cursor: `last of ${partner.id}`, atMs: expect.any(Number) },
  });
  expect((await store.backlog(partner.id)).pull?.atMs).toBeGreaterThan(0);
  expect(await store.backlog(other.id)).toMatchObject({ pending: 0, oldestPendingMs: null, parked: 1 });
  expect((await store.backlog((await registerPartner(pool)).id)).pull).toBeNull();
});

describe("a cursor that stands at the present", () => {
  test("shows nothing that is there already, and everything that comes", async () => {
    for (let i = 0; i < 3; i += 1) await insertNotification(bench.pool, partner.id);
    const now = await pull("now");
    expect(now.items).toEqual([]);
    expect((await bench.store.backlog(partner.id)).pull).toBeNull();
    expect((await pull(now.next)).items).toEqual([]);
    const later = await insertNotification(bench.pool, partner.id);
    expect((await pullAll(10, now.next)).ids).toEqual([later]);
  });

  test("never skips what was under way then, though it was begun before what is visible", async () => {
    const slow = await opened();
    const a = await insertNotification(slow, partner.id);
    const b = await insertNotification(bench.pool, partner.id);
    const now = await pull("now");
    expect(now.items).toEqual([]);
    await ended(slow, "COMMIT");
    expect((await pullAll(1, now.next)).ids).toEqual([a, b]);
  });
});

describe("the notifications after a place", () => {
  async function following(after: string): Promise<string | undefined> {
    const history = await bench.store.history(partner.id);
    const { position } = readCursor(after, history);
    const [found] = await bench.store.following([{ partnerId: partner.id, after: position }]);
    return found;
  }

  test("is nothing, or visible, or not visible while something that began before it is under way", async () => {
    const { next } = await pull("now");
    expect(await following(next)).toBe("nothing");
    await insertNotification(bench.pool, (await registerPartner(bench.pool)).id);
    expect(await following(next)).toBe("nothing");
    const slow = await opened();
    await slow.query("SELECT pg_current_xact_id()");
    await insertNotification(bench.pool, partner.id);
    expect(await following(next)).toBe("not_visible");
    await ended(slow, "ROLLBACK");
    await settled();
    expect(await following(next)).toBe("visible");
  });

  test("is answered for each place by itself, in their order", async () => {
    const other = await registerPartner(bench.pool);
    const { end } = await pullPage(bench.store, () => Promise.reject(new Error("nothing is sealed")), partner, {
      after: "now",
      limit: 1,
    });
    await insertNotification(bench.pool, other.id);
    await settled();
    const places = [partner.id, other.id, partner.id].map((partnerId) => ({ partnerId, after: end }));
    expect(await bench.store.following(places)).toEqual(["nothing", "visible", "nothing"]);
    expect(await bench.store.following([])).toEqual([]);
  });
});

describe("a pull that waits", () => {
  function waiting(after: string): Promise<PulledPage> {
    const patience = {
      durationMs: 30_000,
      signal: new AbortController().signal,
      partnerNow: () => Promise.resolve(partner),
    };
    return bench.notifications.pull(partner, { after, limit: 10, wait: patience });
  }

  test("is answered with what comes, by this instance or by another", async () => {
    for (const tells of [true, false]) {
      const { next } = await pull("now");
      const page = waiting(next);
      await expect.poll(() => bench.arrivals.waiting).toBe(1);
      const id = await insertNotification(bench.pool, partner.id);
      if (tells) bench.arrivals.notify(partner.id);
      expect((await page).items.map((item) => item.id)).toEqual([id]);
    }
  });

  test("is answered with a test notification that the partner asks for", async () => {
    partner = await registerPartner(bench.pool, { callBackUrl: "https://partner.example/ipn" });
    const page = waiting("now");
    await expect.poll(() => bench.arrivals.waiting).toBe(1);
    const { id } = await bench.notifications.sendTest(partner);
    expect((await page).items.map((item) => item.id)).toEqual([id]);
  });

  test("does not wait where there is something", async () => {
    const { next } = await pull("now");
    const id = await insertNotification(bench.pool, partner.id);
    await settled();
    expect((await waiting(next)).items.map((item) => item.id)).toEqual([id]);
  });

  test("is sealed with the keys that stand when it is answered", async () => {
    const { next } = await pull("now");
    const rotated = { ...partner, settings: { ...partner.settings, cipher: "jwe" as const } };
    const page = bench.notifications.pull(partner, {
      after: next,
      limit: 10,
      wait: {
        durationMs: 30_000,
        signal: new AbortController().signal,
        partnerNow: () => Promise.resolve(rotated),
      },
    });
    await expect.poll(() => bench.arrivals.waiting).toBe(1);
    await insertNotification(bench.pool, partner.id);
    expect((await page).items[0]?.data.split(".")).toHaveLength(5);
  });
});

describe("a cursor", () => {
  async function codeOf(after: string): Promise<unknown> {
    return pull(after).then(
      () => "no error",
      (error: { code?: unknown }) => error.code,
    );
  }

  test("that we did not write is refused", async () => {
    expect(await codeOf("abc")).toBe("invalid_cursor");
  });

  test("of another cluster or timeline is refused", async () => {
    const { cluster, horizon, nowMs } = await bench.store.history(partner.id);
    const cursor: Cursor = { position: { xid: horizon, id: "00000000-0000-0000-0000-000000000000" }, asOfMs: nowMs };
    expect(await codeOf(writeCursor(cursor, cluster))).toBe("no error");
    // Of a database that was set back since by copying its files.
    const ahead = { ...cursor, position: { ...cursor.position, xid: horizon + 1_000_000_000n } };
    expect(await codeOf(writeCursor(ahead, cluster))).toBe("cursor_from_another_history");
    expect(await codeOf(writeCursor(cursor, { ...cluster, timeline: cluster.timeline + 1 }))).toBe(
      "cursor_from_another_history",
    );
    const restored = { ...cluster, systemIdentifier: cluster.systemIdentifier ^ 1n };
    expect(await codeOf(writeCursor(cursor, restored))).toBe("cursor_from_another_history");
  });

  test("names the cluster that the server itself names, and an ordinary role may ask for it", async () => {
    const client = await bench.pool.connect();
    try {
      await client.query("BEGIN");
      await client.query("CREATE ROLE ordinary_reader");
      await client.query("GRANT SELECT ON history TO ordinary_reader");
      await client.query("SET LOCAL ROLE ordinary_reader");
      const { rows } = await client.query(
        `SELECT system_identifier::text AS id, left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline
           FROM pg_control_system()`,
      );
      const { cluster } = await bench.store.history(partner.id);
      expect(cluster).toEqual({
        systemIdentifier: BigInt(rows[0].id),
        timeline: Number.parseInt(rows[0].timeline, 16),
      });
    } finally {
      await client.query("ROLLBACK");
      client.release();
    }
  });

  test("expires when history behind it was dropped, but not that of a reader who is up to date", async () => {
    await insertNotification(bench.pool, partner.id);
    const behind = (await pull(undefined, 1)).next;
    const upToDate = (await pull()).next;
    await bench.pool.query("UPDATE history SET kept_from = now() - interval '30 seconds'");
    expect(await codeOf(behind)).toBe("cursor_expired");
    expect(await codeOf(upToDate)).toBe("no error");
    expect(await codeOf((await pull(undefined, 1)).next)).toBe("no error");
  });
});

test("a partner's last pull is the one that was noted last", async () => {
  const [other, own] = [await registerPartner(bench.pool), await registerPartner(bench.pool)];
  await bench.store.notePull(other.id, "other");
  for (const cursor of ["first", "second"]) await bench.store.notePull(own.id, cursor);
  expect((await bench.store.backlog(own.id)).pull).toMatchObject({ cursor: "second" });
});
