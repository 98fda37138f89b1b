import { describe, expect, test } from "vitest";
import { outcomeOf } from "../../delivery/delivery.fixture.ts";
import type { Delivery } from "../../delivery/delivery.ts";
import { newId } from "../../ids.ts";
import { useDeliveries } from "./deliveries.fixture.ts";

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
      { ...late, delayMs: 3_600_000 },
      { ...soon, delayMs: 0 },
    ]);
    const { due, nextInMs } = await context.read();
    expect(due.map(({ id }) => id).sort()).toEqual([soon.id, untouched.id].sort());
    expect(nextInMs).toBeGreaterThan(3_000_000);
    expect(await pending()).toMatchObject([{ attempts_made: 0 }, { attempts_made: 0 }, { attempts_made: 0 }]);
    expect(await query("SELECT FROM attempts")).toEqual([]);
  });

  test.each([
    ["another attempt was made", "attempts_made = 1"],
    ["it was redelivered", "round = 1"],
    ["a person asked for it", "is_asked = true, requests = 1"],
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

describe("a delivery for an endpoint that accepts nothing", () => {
  test("is parked with the endpoint's reason and an event of its own, unless it changed meanwhile", async () => {
    await report(3);
    const [over, changed, tried] = (await pending()).map(({ id }) => id as string);
    await query("UPDATE pending SET attempts_made = 4 WHERE id = $1", [tried]);
    // A redelivery: it was parked before, after one attempt.
    await query("UPDATE pending SET round = 1 WHERE id = $1", [tried]);
    await query(
      `INSERT INTO attempts (partner_id, id, round, attempt_no, lease_id, started_at, duration_ms, url)
       VALUES ($1, $2, 0, 1, $3, now(), 1, 'https://partner.example/ipn')`,
      [context.partnerId, tried, newId()],
    );
    const all = (await context.read()).due.map(({ delivery }) => delivery as Delivery);
    await query("UPDATE pending SET attempts_made = 1 WHERE id = $1", [changed]);
    expect(await context.deliveries.park(all, "timeout")).toBe(2);
    expect(await pending()).toMatchObject([{ id: changed }]);
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
    expect(await context.deliveries.park(all, "timeout")).toBe(0);
    expect(await query("SELECT FROM events")).toHaveLength(2);
  });

  test("is read beside its queue, from any position", async () => {
    await report(3);
    const { partnerId } = context;
    const look = { partnerId, queue: "", after: undefined, rowsMax: 2 };
    const head = await context.deliveries.scan(look);
    expect(head).toMatchObject({ due: [{ delivery: { command: "SALE" } }, {}], hasMore: true });
    const { dueAtUs = 0, id = newId<"notification">() } = head.due[1] ?? {};
    expect(await context.deliveries.scan({ ...look, after: { dueAtUs, id } })).toMatchObject({ hasMore: false });
  });
});
