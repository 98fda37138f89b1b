import { afterAll, expect, test } from "vitest";
import type { FixedContent } from "../../delivery/attempt/content-mac.ts";
import type { NotificationId } from "../../ids.ts";
import { dayMs, dayOf } from "../schema/partitions.ts";
import { ContentSealing } from "./content-sealing.ts";
import { idAt, insertNotification, openBench, registerPartner } from "./notifications.fixture.ts";

const bench = await openBench();
afterAll(() => bench.close());

const unsealed = "SELECT id FROM notifications WHERE content_mac IS NULL ORDER BY id";

test("notifications of an older version get the MAC that they lack, and then none is accepted without", async () => {
  const { pool, partitions, store, contents } = bench;
  const partner = await registerPartner(pool);
  const nowMs = Date.now();
  const longAgo = dayOf(nowMs) - 100 * dayMs;
  const insert = (atMs: number) =>
    insertNotification(pool, partner.id, { id: idAt(atMs), callBackUrl: "https://partner.example/ipn" });
  const old: NotificationId[] = [];
  for (let nth = 0; nth < 600; nth += 1) old.push(await insert(nowMs - 2_000 + nth));
  await partitions.ensureDays([longAgo]);
  const parked: NotificationId[] = [];
  for (const atMs of [longAgo, longAgo + 1]) {
    parked.push(await insertNotification(pool, partner.id, { id: idAt(atMs), state: "parked" }));
  }
  expect(await partitions.maintain()).toMatchObject({ dropped: 1 });

  const sealing = new ContentSealing({ pool, homes: bench.homes, contents });
  await sealing.run();
  expect((await pool.query(unsealed)).rowCount).toBe(600);

  await pool.query("SELECT seal_database(1)");
  const stopped = new ContentSealing({ pool, homes: bench.homes, contents });
  const running = stopped.run();
  await stopped.stop();
  await running;
  expect((await pool.query("SELECT contents_at FROM sealing")).rows).toEqual([{ contents_at: null }]);
  const later = await insert(Date.now() + 3_600_000);
  await sealing.run();
  expect((await pool.query(unsealed)).rows).toEqual([{ id: later }]);
  await partitions.ensureDays([longAgo]);
  await store.redeliver(partner.id, parked, "original");
  const [one] = old;
  for (const [id, content] of await store.contents(partner.id, [...parked, ...(one ? [one] : []), later])) {
    const { mac, ...fixed } = content;
    const stored: FixedContent = { partnerId: partner.id, ...fixed };
    expect(contents.isAsCommitted(stored, mac)).toBe(id !== later);
    expect(contents.isAsCommitted(stored, null)).toBe(false);
  }
});
