import { randomBytes } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createSecureContext } from "node:tls";
import { webhookKey, webhookSignatureMatches } from "@paybell/contract";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { openTestDatabase } from "../../../../test/support/connections.ts";
import { Alerts, type AlertsParts } from "../alerts/alerts.ts";
import { slackTarget, webhookTarget } from "../alerts/http.ts";
import type { AlertChannel } from "../alerts/message.ts";
import type { Alert } from "../alerts/store.ts";
import { systemClock } from "../clock.ts";
import { AddressGuard } from "../delivery/transport/addresses.ts";
import { newId } from "../ids.ts";
import type { EventKind, NewEvent } from "../telemetry/events.ts";
import { postgresEvents } from "./events.ts";

interface Received {
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

let received: Received[];
let answer: (response: ServerResponse) => void;
let started: Alerts[];

const key = webhookKey(`whsec_${randomBytes(32).toString("base64")}`);
const event: NewEvent = { kind: "parked", partnerId: newId(), subjectId: newId(), detail: { attempts: 13 } };
const pool = () => connections.pool;

const connections = await openTestDatabase();
const stored = postgresEvents(connections.homes);
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    received.push({ path: request.url, headers: request.headers, body: Buffer.concat(chunks).toString() });
    answer(response);
  });
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/alerts?to=ops`;

beforeEach(async () => {
  received = [];
  started = [];
  answer = (response) => response.writeHead(204).end();
  await pool().query("TRUNCATE events, alert_quiet");
});

afterEach(async () => {
  await Promise.all(started.map((alerts) => alerts.stop()));
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const rulesOf = (addresses: readonly string[]) => ({
  guard: new AddressGuard(addresses, { loopbackAllowed: true }),
  resolve: () => Promise.resolve(["127.0.0.1"]),
  secureContext: createSecureContext(),
  connectTimeoutMs: 600_000,
});

interface Watched {
  readonly alerts: Alerts;
  readonly recorded: EventKind[];
  /** Resolves with whether the next alert was accepted. */
  sent(): Promise<boolean>;
}

function alertsWith(parts: Partial<AlertsParts> = {}): Watched {
  const outcomes: boolean[] = [];
  let tell: () => void = () => undefined;
  const recorded: EventKind[] = [];
  const alerts = new Alerts({
    store: postgresEvents(connections.homes),
    targets: async () => [webhookTarget(url, key, systemClock, rulesOf(["127.0.0.1/32"]))],
    quietS: 0,
    clock: { nowMs: () => Date.now() },
    log: { warn: () => undefined },
    onRecorded: (kind) => void recorded.push(kind),
    onSent: (_, taken) => {
      outcomes.push(taken);
      tell();
    },
    pollMs: 20,
    timeoutMs: 600_000,
    ...parts,
  });
  started.push(alerts);
  const sent = async (): Promise<boolean> => {
    while (outcomes.length === 0) await new Promise<void>((resolve) => (tell = resolve));
    return outcomes.shift() === true;
  };
  return { alerts, recorded, sent };
}

interface Row {
  readonly kind: string;
  readonly alert_tries: number;
  readonly due_in_s: number | null;
}

async function rows(): Promise<Row[]> {
  const result = await pool().query<Row>(
    "SELECT kind, alert_tries, extract(epoch FROM alert_due_at - now())::float8 AS due_in_s FROM events ORDER BY id",
  );
  return result.rows;
}

/** Waits until the consequence of an outcome is written. */
async function dueIn(holds: (dueInS: number | null) => boolean): Promise<number | null> {
  for (;;) {
    const [row] = await rows();
    if (row && holds(row.due_in_s)) return row.due_in_s;
  }
}

test("the alert due longest is claimed first, and a failure of an earlier claim changes nothing", async () => {
  await stored.record([{ ...event, kind: "endpoint_gone" }, event], true);
  const makeDue = () => pool().query("UPDATE events SET alert_due_at = now() - interval '1 h' WHERE kind = 'parked'");
  await makeDue();
  const first = await stored.claimDue(5, 40);
  await makeDue();
  const again = await stored.claimDue(5, 40);
  expect([first, again]).toMatchObject([1, 2].map((tries) => [{ kind: "parked", tries }]));
  await stored.retry(first, 0, 0);
  expect(await stored.claimDue(5, 40)).toMatchObject([{ kind: "endpoint_gone" }]);
  expect(await stored.claimDue(5, 40)).toEqual([]);
  await stored.retry(again, 0, 0);
  expect(await stored.claimDue(5, 40)).toMatchObject([{ kind: "parked", tries: 3 }]);
});

test("whether something was reported lately is asked of its own kind", async () => {
  const sinceMs = Date.now() - 60_000;
  await stored.record([{ ...event, kind: "parked", partnerId: null }], false);
  expect(await stored.wasRecordedSince("parked", sinceMs)).toBe(true);
  expect(await stored.wasRecordedSince("parked", sinceMs + 3_600_000)).toBe(false);
  expect(await stored.wasRecordedSince("late_approval", sinceMs)).toBe(false);
});

describe("an alert", () => {
  test("is POSTed once, at once, signed, and tells what happened", async () => {
    const idle = Promise.withResolvers<void>();
    const claimDue: typeof stored.claimDue = async (...claim) => {
      const due = await stored.claimDue(...claim);
      if (due.length === 0) idle.resolve();
      return due;
    };
    const { alerts, sent } = alertsWith({ store: { ...stored, claimDue }, pollMs: 600_000 });
    alerts.start();
    await idle.promise;
    await alerts.record(event);
    expect(await sent()).toBe(true);
    await dueIn((dueInS) => dueInS === null);
    expect(received).toHaveLength(1);
    const [{ path, headers, body }] = received as [Received];
    expect(path).toBe("/alerts?to=ops");
    const told = JSON.parse(body);
    expect(told).toEqual({
      id: headers["webhook-id"],
      kind: "parked",
      partnerId: event.partnerId,
      subjectId: event.subjectId,
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      detail: { attempts: 13 },
      count: 1,
      lastAt: told.at,
      others: [],
      runbook_url: "/docs/operator/runbook#parked",
    });
    const signature = String(headers["webhook-signature"]);
    expect(webhookSignatureMatches(signature, told.id, String(headers["webhook-timestamp"]), body, [key])).toBe(true);
    expect(headers["content-type"]).toBe("application/json");
  });

  test("of the service itself names no partner", async () => {
    const { alerts, sent } = alertsWith();
    alerts.start();
    await alerts.record({ kind: "partitions_short", partnerId: null, subjectId: null, detail: { daysAhead: 2 } });
    expect(await sent()).toBe(true);
    expect(JSON.parse(received[0]?.body ?? "")).toMatchObject({ partnerId: null, subjectId: null });
  });

  test("that is not taken is due again after 5 s, 30 s, 2 min, 10 min, and then every hour", async () => {
    answer = (response) => response.writeHead(500).end("no");
    const delaysS: number[] = [];
    const leasesS: number[] = [];
    const claimDue = (rowsMax: number, leaseS: number) => {
      leasesS.push(leaseS);
      return stored.claimDue(rowsMax, leaseS);
    };
    // Remembers each delay, and waits for none.
    const retry = (alerts: readonly Alert[], delayS: number) => {
      delaysS.push(delayS);
      return stored.retry(alerts, 0, 0);
    };
    const { alerts, sent } = alertsWith({ store: { ...stored, claimDue, retry } });
    alerts.start();
    await alerts.record(event);
    for (let tries = 1; tries <= 7; tries += 1) expect(await sent()).toBe(false);
    expect(delaysS.slice(0, 6)).toEqual([5, 30, 120, 600, 3_600, 3_600]);
    // Half a minute longer than a try lasts.
    expect(leasesS[0]).toBe(630);
  });

  test("is due again when its delay is over, which counts from now", async () => {
    const store = postgresEvents(connections.homes);
    await store.record([event], true);
    const claimed = await store.claimDue(1, 40);
    const startedMs = performance.now();
    await store.retry(claimed, 3_600, 0);
    const [row] = await rows();
    expect(row).toMatchObject({ alert_tries: 1 });
    expect(row?.due_in_s).toBeLessThanOrEqual(3_600);
    expect(row?.due_in_s).toBeGreaterThan(3_600 - 1 - (performance.now() - startedMs) / 1_000);
  });

  test("is not sent again to a channel that accepted it if that could not be recorded", async () => {
    const stored = postgresEvents(connections.homes);
    const failures = [new Error("the database is away")];
    const settle = async (alerts: readonly Alert[], quietS: number) => {
      const failure = failures.pop();
      if (failure !== undefined) throw failure;
      await stored.settle(alerts, quietS);
    };
    const claimDue = (rowsMax: number) => stored.claimDue(rowsMax, 0);
    const sent: string[] = [];
    const send = async () => void sent.push("once");
    const channel = { name: "counted", send, close: async () => undefined };
    const { alerts } = alertsWith({ store: { ...stored, claimDue, settle }, targets: async () => [channel] });
    alerts.start();
    await alerts.record(event);
    await dueIn((dueInS) => dueInS === null);
    expect([sent, failures]).toEqual([["once"], []]);
  });

  test("is sent after a restart, by whoever is there then, and not again to a channel that accepted it", async () => {
    answer = (response) => response.writeHead(503).end();
    const sent: string[] = [];
    const healthy = { name: "healthy", send: async () => void sent.push("once"), close: async () => undefined };
    const targets = async () => [webhookTarget(url, key, systemClock, rulesOf(["127.0.0.1/32"])), healthy];
    const first = alertsWith({ retryS: [0], targets });
    first.alerts.start();
    await first.alerts.record(event);
    expect(await first.sent()).toBe(false);
    await first.alerts.stop();
    answer = (response) => response.writeHead(200).end();
    const second = alertsWith({ targets });
    second.alerts.start();
    expect(await second.sent()).toBe(true);
    expect(await dueIn((dueInS) => dueInS === null)).toBeNull();
    expect(sent).toEqual(["once"]);
  });

  test.each([
    ["3 days 1 second", true],
    ["2 days 23 hours", false],
  ])("is given up after three days: after %s %s", async (age, isGivenUp) => {
    answer = (response) => response.writeHead(500).end();
    const { alerts, sent } = alertsWith({ retryS: [100_000], quietS: 3_600 });
    await alerts.record(event);
    await pool().query("UPDATE events SET created_at = now() - $1::interval", [age]);
    alerts.start();
    expect(await sent()).toBe(false);
    await dueIn((dueInS) => (isGivenUp ? dueInS === null : (dueInS ?? 0) > 90_000));
    // It was not sent: the next of its kind is, at once.
    expect((await pool().query("SELECT kind FROM alert_quiet")).rows).toEqual([]);
  });

  test.each([
    ["a redirect", (response: ServerResponse) => response.writeHead(302, { location: url }).end()],
    ["a broken connection", (response: ServerResponse) => response.destroy()],
    ["an answer without an end", (response: ServerResponse) => response.writeHead(500).write("x".repeat(100_000))],
  ])("is not taken by %s", async (_, answering) => {
    answer = answering;
    const { alerts, sent } = alertsWith({ timeoutMs: 600_000, retryS: [100_000] });
    alerts.start();
    await alerts.record(event);
    expect(await sent()).toBe(false);
    await dueIn((dueInS) => (dueInS ?? 0) > 90_000);
    expect(received).toHaveLength(1);
  });

  test("is not taken by an answer that never comes", async () => {
    answer = () => undefined;
    const { alerts, sent } = alertsWith({ timeoutMs: 200, retryS: [100_000] });
    alerts.start();
    await alerts.record(event);
    expect(await sent()).toBe(false);
    await dueIn((dueInS) => (dueInS ?? 0) > 90_000);
  });

  test.each(["by its address", "by a name"])("goes nowhere that its list does not allow, %s", async (how) => {
    const target = how === "by a name" ? url.replace("127.0.0.1", "alerts.test") : url;
    const warnings: object[] = [];
    const { alerts, sent } = alertsWith({
      targets: async () => [webhookTarget(target, key, systemClock, rulesOf(["198.51.100.0/24"]))],
      log: { warn: (fields) => void warnings.push(fields) },
    });
    alerts.start();
    await alerts.record(event);
    expect(await sent()).toBe(false);
    expect(received).toEqual([]);
    expect(warnings[0]).toMatchObject({ problems: [expect.stringContaining("127.0.0.1 is outside")] });
  });

  test("that is being sent when the service stops is due at once again", async () => {
    const { promise: arrived, resolve } = Promise.withResolvers<void>();
    answer = () => resolve();
    const { alerts } = alertsWith({ timeoutMs: 600_000 });
    alerts.start();
    await alerts.record(event);
    await arrived;
    await alerts.stop();
    expect((await rows())[0]?.due_in_s).toBeLessThanOrEqual(0);
  });

  test("is sent although the database was away when it was to be read", async () => {
    let failures = 2;
    const claimDue: typeof stored.claimDue = async (...claim) => {
      failures -= 1;
      if (failures >= 0) throw new Error("the database is away");
      return await stored.claimDue(...claim);
    };
    const { alerts, sent } = alertsWith({ store: { ...stored, claimDue } });
    alerts.start();
    await alerts.record(event);
    expect(await sent()).toBe(true);
  });

  test("is sent by one of several instances alone", async () => {
    const writer = alertsWith();
    for (let i = 0; i < 40; i += 1) await writer.alerts.record({ ...event, detail: { i } });
    const senders = [alertsWith(), alertsWith(), alertsWith()];
    for (const { alerts } of senders) alerts.start();
    while ((await rows()).some((row) => row.due_in_s !== null));
    const told = received.flatMap(({ body }) => {
      const { detail, others } = JSON.parse(body) as { detail: { i: number }; others: { detail: { i: number } }[] };
      return [detail.i, ...others.map((other) => other.detail.i)];
    });
    expect(told.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, i) => i));
    expect((await rows()).every((row) => row.alert_tries === 1)).toBe(true);
  });

  test("of a group that failed is sent although an instance with other settings takes them one by one", async () => {
    answer = (response) => response.writeHead(500).end();
    const together = alertsWith({ quietS: 300, retryS: [0] });
    for (const i of [1, 2, 3]) await together.alerts.record({ ...event, detail: { i } });
    together.alerts.start();
    expect(await together.sent()).toBe(false);
    await together.alerts.stop();
    [received, answer] = [[], (response) => response.writeHead(204).end()];
    const alone = alertsWith({ quietS: 0 });
    alone.alerts.start();
    while ((await rows()).some((row) => row.due_in_s !== null));
    const told = received.map(({ body }) => JSON.parse(body) as { detail: { i: number }; count: number });
    expect(told.map(({ detail, count }) => [detail.i, count]).toSorted()).toEqual([1, 2, 3].map((i) => [i, 1]));
  });

  test("taken by an instance that died is sent by another when its lease is over", async () => {
    const dead = postgresEvents(connections.homes);
    const { alerts, sent } = alertsWith();
    await alerts.record(event);
    expect(await dead.claimDue(5, 40)).toHaveLength(1);
    expect(await dead.claimDue(5, 40)).toHaveLength(0);
    await pool().query("UPDATE events SET alert_due_at = now()");
    alerts.start();
    expect(await sent()).toBe(true);
    expect((await rows())[0]?.alert_tries).toBe(2);
  });
});

describe("an outage", () => {
  const opened = (nth: number): NewEvent => ({ ...event, kind: "breaker_open", detail: { nth } });

  test("alerts at once, then with a count when the quiet time is over, and at its end", async () => {
    const { alerts, sent } = alertsWith({ quietS: 3_600 });
    alerts.start();
    await alerts.record(opened(0));
    expect(await sent()).toBe(true);
    await dueIn((dueInS) => dueInS === null);
    for (let nth = 1; nth <= 150; nth += 1) await alerts.record(opened(nth));
    const waiting = (await rows()).slice(1);
    expect(waiting.every(({ due_in_s: dueInS }) => dueInS !== null && dueInS > 3_000)).toBe(true);
    // Another kind does not wait for it.
    await alerts.record({ ...event, kind: "breaker_closed" });
    expect(await sent()).toBe(true);
    await pool().query("UPDATE events SET alert_due_at = now() WHERE alert_due_at IS NOT NULL");
    expect(await sent()).toBe(true);
    const told = received.map(({ body }) => JSON.parse(body) as { kind: string; count: number; others: object[] });
    expect(told.map(({ kind, count }) => [kind, count])).toEqual([
      ["breaker_open", 1],
      ["breaker_closed", 1],
      ["breaker_open", 150],
    ]);
    expect(told[2]?.others).toHaveLength(100);
  });

  test("that only some targets accept is quiet for all of them: it is not sent to those one by one", async () => {
    const taken: number[] = [];
    const good: AlertChannel = {
      name: "good",
      send: async ({ count }) => void taken.push(count),
      close: () => Promise.resolve(),
    };
    const bad: AlertChannel = { name: "bad", send: async () => "status 404", close: () => Promise.resolve() };
    const { alerts, sent } = alertsWith({ targets: async () => [good, bad], quietS: 3_600, retryS: [3_600] });
    alerts.start();
    await alerts.record(opened(0));
    expect(await sent()).toBe(false);
    await dueIn((dueInS) => (dueInS ?? 0) > 3_500);
    for (let nth = 1; nth <= 3; nth += 1) await alerts.record(opened(nth));
    expect((await rows()).slice(1).map(({ due_in_s: dueInS }) => (dueInS ?? 0) > 3_000)).toEqual([true, true, true]);
    expect(taken).toEqual([1]);
  });

  test("that one target did not accept is sent again to that target only, with nothing added", async () => {
    const taken: number[] = [];
    const good: AlertChannel = {
      name: "good",
      send: async ({ count }) => void taken.push(count),
      close: () => Promise.resolve(),
    };
    answer = (response) => response.writeHead(500).end();
    const targets = async () => [good, webhookTarget(url, key, systemClock, rulesOf(["127.0.0.1/32"]))];
    // It is due again when this test says so.
    const { alerts, sent } = alertsWith({ targets, quietS: 1, retryS: [3_600] });
    await alerts.record(opened(1));
    await alerts.record(opened(2));
    alerts.start();
    expect(await sent()).toBe(false);
    answer = (response) => response.writeHead(204).end();
    await alerts.record(opened(3));
    expect(await sent()).toBe(true);
    await pool().query("UPDATE events SET alert_due_at = now() WHERE alert_due_at IS NOT NULL");
    expect(await sent()).toBe(true);
    expect(taken).toEqual([2, 1]);
    expect(received.map(({ body }) => JSON.parse(body).count)).toEqual([2, 1, 2]);
  });

  test("reads in a chat as a title with its number, and a line for each, nothing of it markup", async () => {
    const targets = async () => [slackTarget(url, rulesOf(["127.0.0.1/32"]))];
    const { alerts, sent } = alertsWith({ targets, quietS: 1 });
    await alerts.record({ ...event, kind: "report_refused", detail: { problem: "<!channel>" } });
    await alerts.record({ ...event, kind: "report_refused", detail: { problem: "b" } });
    alerts.start();
    expect(await sent()).toBe(true);
    const { text } = JSON.parse(received[0]?.body ?? "") as { text: string };
    expect(text).toMatch(/^\*Paybell: A switch's report was refused \(2 times\)\*\n\d{4}-/);
    expect(text).toContain("&lt;!channel&gt;");
    expect(text.split("\n")).toHaveLength(4);
    expect(text).toMatch(/\n\/docs\/operator\/runbook#report_refused$/);
  });
});

describe("an event", () => {
  test("that is not an alert is recorded and counted, and sent to no target", async () => {
    const { alerts, recorded, sent } = alertsWith();
    alerts.start();
    await alerts.record({ ...event, kind: "delimiter_sent" });
    await alerts.record(event);
    expect(await sent()).toBe(true);
    expect(recorded).toEqual(["delimiter_sent", "parked"]);
    expect(received.map(({ body }) => JSON.parse(body).kind)).toEqual(["parked"]);
  });

  test("is recorded and counted without an alert URL, never waits for one, and is one event under its id", async () => {
    const { alerts, recorded } = alertsWith({ targets: undefined });
    alerts.start();
    const known = { ...event, id: newId<"event">() };
    expect([await alerts.isRecorded(known), await alerts.isRecorded(known)]).toEqual([true, true]);
    expect(recorded).toEqual(["parked", "parked"]);
    expect(await rows()).toEqual([{ kind: "parked", alert_tries: 0, due_in_s: null }]);
  });

  test("that every instance sees is recorded by one of them, and again when its time is over", async () => {
    const ofService = { kind: "oldest_pending", partnerId: null, subjectId: null, detail: {} } as const;
    const nowMs = Date.now();
    for (const afterMs of [0, 0, 50_000, 70_000]) {
      const clock = { nowMs: () => nowMs + afterMs };
      await alertsWith({ clock, targets: undefined }).alerts.recordOnce(ofService, 60_000);
    }
    expect(await rows()).toHaveLength(2);
  });

  test("that the database did not take is recorded once it does, or at the stop, and only once", async () => {
    for (const ending of ["later", "at the stop"]) {
      await pool().query("TRUNCATE events");
      const recorded = Promise.withResolvers<void>();
      let [failures, isDurable] = [ending === "later" ? 10 : 1, false];
      const record = async (events: readonly NewEvent[], alert: boolean) => {
        failures -= 1;
        // Written, and the answer lost.
        if (failures >= 0) await stored.record(events, alert);
        if (failures >= 0) throw new Error("the database is away");
        await stored.record(events, alert);
        isDurable = true;
        recorded.resolve();
      };
      const pollMs = ending === "later" ? 1 : 600_000;
      const { alerts } = alertsWith({ store: { ...stored, record }, targets: undefined, pollMs });
      expect(await alerts.isRecorded(event), ending).toBe(false);
      await (ending === "at the stop" ? alerts.stop() : recorded.promise);
      expect(isDurable, ending).toBe(true);
      expect(await rows(), ending).toHaveLength(1);
    }
  });

  test("is not kept for a database that is away if too many are, until some are recorded", async () => {
    const taken: unknown[] = [];
    let failures = 3;
    const record = async ([{ detail } = event]: readonly NewEvent[]) => {
      failures -= 1;
      if (failures >= 0) throw new Error("the database is away");
      taken.push(detail["nth"]);
    };
    const store = { ...stored, record };
    const { alerts } = alertsWith({ store, targets: undefined, pollMs: 600_000, unrecordedMax: 2 });
    for (const nth of [1, 2, 3]) await alerts.record({ ...event, detail: { nth } });
    await alerts.stop();
    failures = 1;
    await alerts.record({ ...event, detail: { nth: 4 } });
    await alerts.stop();
    expect(taken).toEqual([1, 2, 4]);
  });

  test("that cannot be recorded is logged, and breaks nothing", async () => {
    const logged: object[] = [];
    const store = postgresEvents(connections.homes);
    const { alerts } = alertsWith({ store, log: { warn: (fields) => void logged.push(fields) } });
    await alerts.record({ ...event, subjectId: "not an id" });
    expect(logged).toHaveLength(1);
    expect(await rows()).toEqual([]);
  });
});
