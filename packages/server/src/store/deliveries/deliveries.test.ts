import type { PoolClient } from "pg";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { lockWaits } from "../../../../../test/support/locks.ts";
import { failedAttempt, outcomeOf } from "../../delivery/delivery.fixture.ts";
import type { Delivery } from "../../delivery/delivery.ts";
import { closedCircuit } from "../../delivery/limits/circuit.ts";
import type { CircuitChange } from "../../delivery/limits/circuits.ts";
import { type EndpointId, newId } from "../../ids.ts";
import { postgresEndpoints } from "./circuits.ts";
import { useDeliveries } from "./deliveries.fixture.ts";
import { PostgresDeliveries } from "./deliveries.ts";

const context = useDeliveries();
const { report, first, pending, query } = context;

const record = (...args: Parameters<typeof outcomeOf>) => context.deliveries.record(outcomeOf(...args));

async function reportOne(): Promise<Delivery> {
  await report(1);
  return first();
}

/** A manual redelivery: due now, in the next round, its attempts counted from 0. */
async function redelivered({ id }: Delivery): Promise<void> {
  await query("UPDATE pending SET round = round + 1, attempts_made = 0, due_at = now() WHERE id = $1", [id]);
}

const attempts = () =>
  query("SELECT id, round, attempt_no, lease_id, http_status, url, duration_ms FROM attempts ORDER BY attempt_no");
const parked = () => query("SELECT id, round, attempts_made, reason FROM parked ORDER BY id");
const events = () => query("SELECT id, kind, partner_id, subject_id, detail FROM events ORDER BY id");

describe("an accepted notification", () => {
  test("is gone from pending, and its attempt is recorded", async () => {
    const delivery = await reportOne();
    const outcome = outcomeOf(delivery, "accepted");
    expect(await context.deliveries.record(outcome)).toBe("applied");
    expect(await pending()).toEqual([]);
    const { url } = outcome.attempt;
    expect(await attempts()).toEqual([
      { id: delivery.id, round: 0, attempt_no: 1, lease_id: outcome.leaseId, http_status: 200, url, duration_ms: 12 },
    ]);
    expect(await events()).toEqual([]);
  });

  test("is gone too when it was given to a new owner, who has tried it since", async () => {
    const late = await reportOne();
    await record(late, { delayMs: 60_000 });
    expect(await record(late, "accepted")).toBe("applied");
    expect(await pending()).toEqual([]);
  });

  test("is gone from what is parked, where another attempt parked it before", async () => {
    const late = await reportOne();
    await record(late, "parked");
    expect(await parked()).toHaveLength(1);
    expect(await record(late, "accepted")).toBe("applied");
    expect([...(await parked()), ...(await pending())]).toEqual([]);
  });

  test("is gone beside outcomes of other kinds in the same commit", async () => {
    await report(4);
    const { due } = await context.read();
    const [accepted, unparked, retried, given] = due.map(({ delivery }) => delivery as Delivery) as [
      Delivery,
      Delivery,
      Delivery,
      Delivery,
    ];
    await record(unparked, "parked");
    const answers = await Promise.all([
      record(accepted, "accepted"),
      record(unparked, "accepted"),
      record(retried, { delayMs: 60_000 }),
      record(given, "parked"),
    ]);
    expect(answers).toEqual(["applied", "applied", "applied", "applied"]);
    expect(await pending()).toMatchObject([{ id: retried.id, attempts_made: 1, later: true }]);
    expect(await parked()).toMatchObject([{ id: given.id }]);
  });

  test("of an earlier round ends no redelivery, pending or parked", async () => {
    const late = await reportOne();
    await redelivered(late);
    await record(late, "accepted");
    expect(await pending()).toMatchObject([{ id: late.id, round: 1, attempts_made: 0 }]);
    await record(await first(), "parked");
    await record({ ...late, attemptsMade: 1 }, "accepted");
    expect(await parked()).toMatchObject([{ id: late.id, round: 1 }]);
  });

  test("of a later round ends what is still of an earlier one", async () => {
    const delivery = await reportOne();
    await record({ ...delivery, round: 2 }, "accepted");
    expect(await pending()).toEqual([]);
  });
});

describe("a failed attempt", () => {
  test("makes the row due again later, and is counted", async () => {
    const delivery = await reportOne();
    expect(await record(delivery, { delayMs: 3_600_000 })).toBe("applied");
    expect(await pending()).toMatchObject([{ round: 0, attempts_made: 1, later: true }]);
    const { nextInMs } = await context.read();
    expect(nextInMs).toBeGreaterThan(3_000_000);
    expect(nextInMs).toBeLessThanOrEqual(3_600_000);
    expect(await attempts()).toMatchObject([{ attempt_no: 1, http_status: 503 }]);
  });

  test("that a person asked for is no step of the schedule, and the next one is again", async () => {
    const delivery = await reportOne();
    const asked = () => query("SELECT attempts_made, asked, is_asked FROM pending");
    await record(delivery, { delayMs: 0 });
    await query("UPDATE pending SET is_asked = true, requests = 1");
    await record(await first(), { delayMs: 0 });
    expect(await asked()).toEqual([{ attempts_made: 2, asked: 1, is_asked: false }]);
    await record({ ...delivery, attemptsMade: 2 }, { delayMs: 0 });
    expect(await asked()).toEqual([{ attempts_made: 3, asked: 1, is_asked: false }]);
  });

  test("leaves the row due where a person asked for one while it was under way: that one goes to the URL of now", async () => {
    await record(await reportOne(), { delayMs: 0 });
    const onTheWire = await first();
    await query("UPDATE pending SET is_asked = true, requests = requests + 1, to_registered = true");
    expect(await record(onTheWire, { delayMs: 60_000 })).toBe("applied");
    expect(await pending()).toMatchObject([{ attempts_made: 2, later: false }]);
    const asked = await first();
    expect(asked).toMatchObject({ attemptsMade: 2, asked: 1, toRegistered: true });
    // The one that was asked for is under way, and is asked for once more.
    await query("UPDATE pending SET is_asked = true, requests = requests + 1");
    await record(asked, { delayMs: 60_000 });
    expect(await pending()).toMatchObject([{ attempts_made: 3, later: false }]);
    const again = await first();
    expect(again).toMatchObject({ attemptsMade: 3, asked: 2 });
    await record(again, { delayMs: 60_000 });
    expect(await pending()).toMatchObject([{ attempts_made: 4, later: true }]);
  });

  test("keeps an answer that is bytes, not text, as it is", async () => {
    const delivery = await reportOne();
    const answer = Buffer.from([0x00, 0xff, 0xd8, 0x5c, 0x22]);
    await record(delivery, { delayMs: 1 }, { attempt: { ...failedAttempt, answer } });
    expect(await query("SELECT answer FROM attempts")).toEqual([{ answer }]);
  });

  test("that parks is kept with its reason, and told once", async () => {
    const delivery = await reportOne();
    await record(delivery, { delayMs: 0 });
    const outcome = outcomeOf({ ...delivery, attemptsMade: 1, attemptsBefore: 3 }, "parked");
    expect(await context.deliveries.record(outcome)).toBe("applied");
    expect(await pending()).toEqual([]);
    expect(await parked()).toEqual([{ id: delivery.id, round: 0, attempts_made: 2, reason: "status" }]);
    const detail = { reason: "status", detail: "HTTP 503", httpStatus: 503, attemptsMade: 5 };
    const { partnerId, id } = delivery;
    // As after a COMMIT whose answer was lost.
    expect(await context.deliveries.record(outcome)).toBe("missed");
    const event = { id: expect.any(String), kind: "parked", partner_id: partnerId, subject_id: id, detail };
    expect(await events()).toEqual([event]);
  });

  test("that parks is reported once when two owners sent it, and their outcomes share a commit", async () => {
    const delivery = await reportOne();
    await Promise.all([record(delivery, "parked"), record(delivery, "parked")]);
    expect(await parked()).toHaveLength(1);
    expect(await attempts()).toHaveLength(2);
    expect(await events()).toHaveLength(1);
  });

  test("is not reported as parked when another owner's outcome in the same commit made it due again", async () => {
    const delivery = await reportOne();
    const answers = await Promise.all([record(delivery, { delayMs: 60_000 }), record(delivery, "parked")]);
    expect(answers).toEqual(["applied", "missed"]);
    expect(await pending()).toMatchObject([{ id: delivery.id, attempts_made: 1, later: true }]);
    expect([...(await parked()), ...(await events())]).toEqual([]);
  });

  test.each(["retry", "parked"] as const)("to %s that belongs to an earlier attempt changes nothing", async (kind) => {
    const late = await reportOne();
    await record(late, { delayMs: 60_000 });
    const before = await query("SELECT * FROM pending");
    expect(await record(late, kind === "retry" ? { delayMs: 1 } : kind)).toBe("missed");
    expect(await query("SELECT * FROM pending")).toEqual(before);
    expect([...(await parked()), ...(await events())]).toEqual([]);
    // Both attempts happened, under different leases, and history has both.
    expect(await attempts()).toHaveLength(2);
  });

  test.each(["retry", "parked"] as const)("to %s that belongs to an earlier round changes nothing", async (kind) => {
    const late = await reportOne();
    await redelivered(late);
    const before = await query("SELECT * FROM pending");
    expect(await record(late, kind === "retry" ? { delayMs: 1 } : kind)).toBe("missed");
    expect(await query("SELECT * FROM pending")).toEqual(before);
    expect([...(await parked()), ...(await events())]).toEqual([]);
    expect(await attempts()).toMatchObject([{ round: 0, attempt_no: 1 }]);
  });

  test.each(["retry", "parked"] as const)("to %s brings nothing back that was accepted", async (kind) => {
    const late = await reportOne();
    await record(late, "accepted");
    expect(await record(late, kind === "retry" ? { delayMs: 1 } : kind)).toBe("missed");
    expect([...(await pending()), ...(await parked()), ...(await events())]).toEqual([]);
  });
});

describe("an outcome", () => {
  /** Runs the statement, and loses the answer. */
  function loseNext(words: "COMMIT" | "WITH attempt"): { readonly lost: number } {
    const { engine } = context.connections;
    const state = { lost: 0 };
    const losing = (target: Pick<PoolClient, "query">) => {
      const ask = target.query.bind(target) as (query: unknown) => Promise<unknown>;
      return async (asked: string | { readonly text: string }) => {
        const answer = await ask(asked);
        const text = typeof asked === "string" ? asked : asked.text;
        if (state.lost > 0 || !text.includes(words)) return answer;
        state.lost += 1;
        throw new Error("Connection terminated unexpectedly");
      };
    };
    const [connect, query] = [engine.connect.bind(engine), losing(engine)];
    const spies = [
      vi.spyOn(engine, "query").mockImplementation(query as never),
      vi.spyOn(engine, "connect").mockImplementation((async (callback?: never) => {
        // The pool's own way to get a connection, for a query outside of a transaction.
        if (callback !== undefined) return connect(callback);
        const client = await connect();
        const losingQuery = losing(client);
        return new Proxy(client, {
          get: (target, name) => {
            if (name === "query") return losingQuery;
            const value: unknown = Reflect.get(target, name);
            return typeof value === "function" ? value.bind(target) : value;
          },
        });
      }) as never),
    ];
    onTestFinished(() => spies.forEach((spy) => void spy.mockRestore()));
    return state;
  }

  test("whose COMMIT had no answer is recorded again, with one attempt and one event of each kind", async () => {
    const delivery = await reportOne();
    const origin = "https://partner.example";
    const change = {
      partnerId: delivery.partnerId,
      queue: origin,
      endpointId: newId<"endpoint">() as EndpointId,
      kind: "origin",
      target: origin,
      circuit: { state: "open", failures: 5, probes: 0, probeInMs: 5_000, lastReason: "status" },
      before: closedCircuit,
      changeNo: 1,
      epoch: 1,
      controlNo: 0,
      event: { id: newId<"event">(), kind: "breaker_open" },
    } as const;
    const state = loseNext("COMMIT");
    await record(delivery, "parked", { circuits: [change] });
    expect(state.lost).toBe(1);
    expect(await pending()).toEqual([]);
    expect(await parked()).toHaveLength(1);
    expect(await attempts()).toHaveLength(1);
    expect((await events()).map(({ kind }) => kind).sort()).toEqual(["breaker_open", "parked"]);
  });

  test("to retry whose COMMIT had no answer counts one attempt", async () => {
    const state = loseNext("COMMIT");
    await record(await reportOne(), { delayMs: 60_000 });
    expect(state.lost).toBe(1);
    expect(await pending()).toMatchObject([{ attempts_made: 1 }]);
    expect(await attempts()).toHaveLength(1);
  });

  test("that was accepted, and whose statement had no answer, has one attempt", async () => {
    const state = loseNext("WITH attempt");
    expect(await record(await reportOne(), "accepted")).toBe("applied");
    expect(state.lost).toBe(1);
    expect(await pending()).toEqual([]);
    expect(await attempts()).toHaveLength(1);
  });

  test("that is recorded twice counts once", async () => {
    const outcome = outcomeOf(await reportOne(), { delayMs: 60_000 });
    expect(await context.deliveries.record(outcome)).toBe("applied");
    expect(await context.deliveries.record(outcome)).toBe("missed");
    expect(await pending()).toMatchObject([{ attempts_made: 1 }]);
    expect(await attempts()).toHaveLength(1);
  });

  test("of the same attempt under another lease is an attempt of its own", async () => {
    const delivery = await reportOne();
    await Promise.all([record(delivery, { delayMs: 1 }), record(delivery, { delayMs: 1 })]);
    const rows = await attempts();
    expect(rows).toMatchObject([{ attempt_no: 1 }, { attempt_no: 1 }]);
    expect(new Set(rows.map((row) => row["lease_id"])).size).toBe(2);
    expect(await pending()).toMatchObject([{ attempts_made: 1 }]);
  });

  test("counts even where its day of history is gone", async () => {
    await report(3);
    const [accepted, retried, given] = (await context.read()).due.map(({ delivery }) => delivery as Delivery) as [
      Delivery,
      Delivery,
      Delivery,
    ];
    await query("ALTER TABLE attempts DETACH PARTITION attempts_now");
    const { rows } = await context.connections.pool.query<{ bounds: string }>(
      "SELECT pg_get_expr(relpartbound, oid) AS bounds FROM pg_class WHERE relname = 'notifications_now'",
    );
    try {
      const outcomes = [record(accepted, "accepted"), record(retried, { delayMs: 60_000 }), record(given, "parked")];
      expect(await Promise.all(outcomes)).toEqual(["applied", "applied", "applied"]);
    } finally {
      await query(`ALTER TABLE attempts ATTACH PARTITION attempts_now ${rows[0]?.bounds}`);
    }
    expect(await pending()).toMatchObject([{ id: retried.id, attempts_made: 1 }]);
    expect(await parked()).toMatchObject([{ id: given.id }]);
    expect(await events()).toHaveLength(1);
    expect(await attempts()).toEqual([]);
  });

  test.each([
    ["accepted", "accepted"],
    ["to retry", { delayMs: 60_000 }],
    ["parked", "parked"],
  ] as const)("%s finds a row that another transaction moved meanwhile", async (_, next) => {
    const delivery = await reportOne();
    const mover = await context.connections.pool.connect();
    try {
      await mover.query("BEGIN");
      await mover.query("UPDATE pending SET due_at = due_at + interval '1 second'");
      const recorded = record(delivery, next);
      await lockWaits(context.connections.pool);
      await mover.query("COMMIT");
      expect(await recorded).toBe("applied");
    } finally {
      mover.release();
    }
    expect((await pending()).map((row) => row["attempts_made"])).toEqual(
      next === "accepted" || next === "parked" ? [] : [1],
    );
    expect(await parked()).toHaveLength(next === "parked" ? 1 : 0);
  });

  test("accepted finds such a row beside a failed one in the same commit, too", async () => {
    await report(2);
    const [moved, failed] = (await context.read()).due.map(({ delivery }) => delivery as Delivery) as [
      Delivery,
      Delivery,
    ];
    const mover = await context.connections.pool.connect();
    try {
      await mover.query("BEGIN");
      await mover.query("UPDATE pending SET due_at = due_at + interval '1 second' WHERE id = $1", [moved.id]);
      const recorded = Promise.all([record(moved, "accepted"), record(failed, { delayMs: 60_000 })]);
      await lockWaits(context.connections.pool);
      await mover.query("COMMIT");
      expect(await recorded).toEqual(["applied", "applied"]);
    } finally {
      mover.release();
    }
    expect(await pending()).toMatchObject([{ id: failed.id, attempts_made: 1 }]);
  });

  test("that is accepted while another transaction parks it ends there, too", async () => {
    const delivery = await reportOne();
    const parker = await context.connections.pool.connect();
    try {
      await parker.query("BEGIN");
      await parker.query(
        `WITH gone AS (DELETE FROM pending RETURNING *)
         INSERT INTO parked (partner_id, id, chain_id, round, attempts_made, bytes, reason)
         SELECT partner_id, id, chain_id, round, 1, bytes, 'timeout' FROM gone`,
      );
      const recorded = record(delivery, "accepted");
      await lockWaits(context.connections.pool);
      await parker.query("COMMIT");
      expect(await recorded).toBe("applied");
    } finally {
      parker.release();
    }
    expect([...(await pending()), ...(await parked())]).toEqual([]);
  });
});

test("what is parked, and a circuit that changes, is an alert where alerts are sent", async () => {
  const { connections, partnerId } = context;
  for (const alerting of [true, false]) {
    await query("TRUNCATE events, pending, endpoints");
    await report(3);
    const due = (await context.read()).due.map(({ delivery }) => delivery as Delivery);
    const [tried, over, trips] = due as [Delivery, Delivery, Delivery];
    const deliveries = new PostgresDeliveries(connections.homes, { alerting });
    await deliveries.record(outcomeOf(tried, "parked"));
    await deliveries.park([over], "timeout");
    const [endpointId, target] = [newId<"endpoint">(), "https://partner.example"];
    const change: CircuitChange = {
      ...{ partnerId, queue: target, endpointId, kind: "origin", target, changeNo: 1, epoch: 1, controlNo: 0 },
      circuit: { ...closedCircuit, state: "open", failures: 5, probeInMs: 5_000 },
      before: closedCircuit,
      event: { id: newId<"event">(), kind: "breaker_open" },
    };
    await deliveries.record(outcomeOf(trips, { delayMs: 60_000 }, { circuits: [change] }));
    await postgresEndpoints(connections, { alerting }).close(endpointId);
    const kinds = ["breaker_closed", "breaker_open", "parked", "parked"];
    expect(await query("SELECT kind, alert_due_at IS NOT NULL AS due FROM events ORDER BY kind")).toEqual(
      kinds.map((kind) => ({ kind, due: alerting })),
    );
  }
});
