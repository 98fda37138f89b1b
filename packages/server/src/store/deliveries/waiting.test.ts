import { describe, expect, test } from "vitest";
import { outcomeOf } from "../../delivery/delivery.fixture.ts";
import type {
  Delivery,
  MisplacedLook,
  MisplacedLooked,
  OverdueLook,
  OverdueLooked,
  QueuePosition,
} from "../../delivery/store.ts";
import { newId } from "../../ids.ts";
import { useDeliveries } from "./deliveries.fixture.ts";

const origin = "https://partner.example";
const context = useDeliveries();
const { report, first, pending, query } = context;

const parked = () => query("SELECT id, round, attempts_made, reason FROM parked ORDER BY id");

describe("a postponed delivery", () => {
  test("is due again after its delay, each after its own, and no attempt is counted", async () => {
    await report(3);
    const [soon, late, untouched] = (await context.read()).due.map(({ delivery }) => delivery as Delivery) as [
      Delivery,
      Delivery,
      Delivery,
    ];
    await context.deliveries.postpone([
      { ...late, delayMs: 60_000 },
      { ...soon, delayMs: 0 },
    ]);
    const { due, nextInMs } = await context.read();
    expect(due.map(({ id }) => id).sort()).toEqual([soon.id, untouched.id].sort());
    expect(nextInMs).toBeGreaterThan(50_000);
    expect(await pending()).toMatchObject([{ attempts_made: 0 }, { attempts_made: 0 }, { attempts_made: 0 }]);
    expect(await query("SELECT FROM attempts")).toEqual([]);
  });

  test.each([
    ["another attempt was made", "attempts_made = 1"],
    ["it was redelivered", "round = 1"],
  ])("stays due as it is where %s since", async (_, change) => {
    await report(1);
    const before = await first();
    await query(`UPDATE pending SET ${change}`);
    await context.deliveries.postpone([{ ...before, delayMs: 60_000 }]);
    expect(await pending()).toMatchObject([{ later: false }]);
  });

  test("may be gone, or nothing at all", async () => {
    await report(1);
    const gone = await first();
    await context.deliveries.record(outcomeOf(gone, "accepted"));
    await context.deliveries.postpone([{ ...gone, delayMs: 1 }]);
    await context.deliveries.postpone([]);
    expect(await pending()).toEqual([]);
  });
});

describe("a moved delivery", () => {
  const tills = "SALE";

  test("waits in the queue named, due as it was; its neighbours stay", async () => {
    await report(3);
    const { due } = await context.read();
    const [one, ...others] = due.map(({ delivery }) => delivery as Delivery) as [Delivery, ...Delivery[]];
    await context.deliveries.move([{ ...one, queue: tills }]);
    expect((await context.read({ queue: tills })).due).toMatchObject([
      { id: one.id, dueAtUs: due[0]?.dueAtUs, delivery: { queue: tills, attemptsMade: 0 } },
    ]);
    expect((await context.read()).due.map(({ id }) => id)).toEqual(others.map(({ id }) => id));
  });

  test.each([
    ["another attempt was made", "attempts_made = 1"],
    ["it was redelivered", "round = 1"],
  ])("stays in its queue where %s since", async (_, change) => {
    await report(1);
    const before = await first();
    await query(`UPDATE pending SET ${change}`);
    await context.deliveries.move([{ ...before, queue: tills }]);
    expect(await pending()).toMatchObject([{ queue: "" }]);
  });
});

describe("a delivery whose command has another registered URL now", () => {
  const move = (more: Partial<MisplacedLook> = {}): Promise<MisplacedLooked> => {
    const queueOf: MisplacedLook["queueOf"] = ({ command, callBackUrl, toRegistered }) => {
      if (callBackUrl !== null && toRegistered !== true) return callBackUrl;
      return command === "SALE" ? "SALE" : "";
    };
    return context.deliveries.moveMisplaced({
      partnerId: context.partnerId,
      queue: "",
      after: undefined,
      queueOf,
      ...more,
    });
  };

  test("is moved to its queue, also if it is due later; those of other commands and queues stay", async () => {
    await report(3);
    const [first, second, third] = (await pending()).map(({ id }) => id as string);
    await query("UPDATE notifications SET command = 'SETTLEMENT' WHERE id = $1", [first]);
    await query("UPDATE pending SET due_at = now() + interval '1 day' WHERE id = $1", [second]);
    await report(1, { callBackUrl: `${origin}/ipn` });
    expect(await move()).toEqual({ filled: new Set(["SALE"]), after: undefined });
    const queues = await query('SELECT id, queue FROM pending ORDER BY queue COLLATE "C", id');
    expect(queues).toEqual([
      { id: first, queue: "" },
      ...[second, third].sort().map((id) => ({ id, queue: "SALE" })),
      { id: expect.anything(), queue: origin },
    ]);
    expect(await move()).toEqual({ filled: new Set(), after: undefined });
  });

  test("is looked for to the end of the queue, some rows at a time", async () => {
    await report(501);
    await query("UPDATE notifications SET command = 'SETTLEMENT'");
    await query("UPDATE notifications SET command = 'SALE' WHERE id = (SELECT max(p.id::text)::uuid FROM pending p)");
    const head = await move();
    expect(head).toMatchObject({ filled: new Set(), after: { id: expect.anything() } });
    expect(await move({ after: head.after })).toEqual({ filled: new Set(["SALE"]), after: undefined });
  });
});

describe("a delivery for an endpoint that accepts nothing", () => {
  const hourMs = 3_600_000;
  const look = (more: Partial<OverdueLook> = {}): Promise<OverdueLooked> => {
    const { partnerId } = context;
    return context.deliveries.parkOverdue({
      partnerId,
      queue: "",
      after: undefined,
      scheduleMs: hourMs,
      reason: "timeout",
      ...more,
    });
  };

  test("is parked once its schedule is over, with the endpoint's reason and an event of its own", async () => {
    await report(3);
    const [over, young, tried] = (await pending()).map(({ id }) => id as string);
    await query(
      `UPDATE pending SET schedule_start = now() - interval '61 minutes', attempts_made = (id = $2)::integer * 4
       WHERE id = ANY (ARRAY[$1, $2]::uuid[])`,
      [over, tried],
    );
    await query("UPDATE pending SET schedule_start = now() - interval '59 minutes' WHERE id = $1", [young]);
    // A redelivery: it was parked before, after one attempt.
    await query("UPDATE pending SET round = 1 WHERE id = $1", [tried]);
    await query(
      `INSERT INTO attempts (partner_id, id, round, attempt_no, lease_id, started_at, duration_ms, url)
       VALUES ($1, $2, 0, 1, $3, now(), 1, 'https://partner.example/ipn')`,
      [context.partnerId, tried, newId()],
    );
    expect(await look()).toEqual({ parked: 2, after: undefined });
    expect(await pending()).toMatchObject([{ id: young }]);
    expect(await parked()).toEqual([
      { id: over, round: 0, attempts_made: 0, reason: "timeout" },
      { id: tried, round: 1, attempts_made: 4, reason: "timeout" },
    ]);
    const detail = { reason: "timeout", detail: expect.stringContaining("schedule was over"), httpStatus: null };
    const { partnerId } = context;
    expect(await query("SELECT kind, partner_id, subject_id, detail FROM events ORDER BY subject_id")).toEqual([
      { kind: "parked", partner_id: partnerId, subject_id: over, detail: { ...detail, attemptsMade: 0 } },
      { kind: "parked", partner_id: partnerId, subject_id: tried, detail: { ...detail, attemptsMade: 5 } },
    ]);
    expect(await look()).toEqual({ parked: 0, after: undefined });
    expect(await query("SELECT FROM events")).toHaveLength(2);
  });

  test("is its queue's alone: another origin's goes on waiting", async () => {
    await report(1);
    await report(1, { callBackUrl: `${origin}/ipn` });
    await query("UPDATE pending SET schedule_start = now() - interval '1 day'");
    expect(await look({ queue: origin })).toEqual({ parked: 1, after: undefined });
    expect(await pending()).toMatchObject([{ queue: "" }]);
  });

  test("is looked at to the end of the queue, some rows at a time, however many are not overdue", async () => {
    const { partnerId } = context;
    // 200 rows with the same due time, as in a batch; every third is overdue.
    await query(
      `INSERT INTO pending (partner_id, id, chain_id, due_at, bytes, schedule_start)
       SELECT $1, gen_random_uuid(), gen_random_uuid(), now() + i / 200 * interval '1 second', 2,
         now() - CASE i % 3 WHEN 0 THEN interval '2 hours' ELSE interval '1 minute' END
       FROM generate_series(1, 1200) AS i`,
      [partnerId],
    );
    let after: QueuePosition | undefined;
    const parkedEach: number[] = [];
    for (let looks = 0; looks < 3; looks += 1) {
      const looked: OverdueLooked = await look({ after });
      parkedEach.push(looked.parked);
      after = looked.after;
      expect(after === undefined).toBe(looks === 2);
    }
    expect(parkedEach.reduce((sum, count) => sum + count, 0)).toBe(400);
    expect(parkedEach.every((count) => count > 0)).toBe(true);
    expect(await query("SELECT FROM pending WHERE schedule_start < now() - interval '1 hour'")).toEqual([]);
    expect(await query("SELECT FROM pending")).toHaveLength(800);
    expect(await query("SELECT FROM events")).toHaveLength(400);
  });
});
