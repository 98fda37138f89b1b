import { expect, onTestFinished, test, vi } from "vitest";
import type { Acquirer, AcquirerHealth, Acquirers } from "../../acquirer/acquirer.ts";
import { onlyAcquirer } from "../../acquirer/only-acquirer.fixture.ts";
import { SimulatedAcquirer } from "../../acquirer/simulator/simulator.ts";
import { AcquirerWatch } from "../../alerts/watches.ts";
import { createMetrics } from "../../telemetry/metrics.ts";
import { acquirerDetails, acquirerLinks, health, registeredHealth, serviceStatusOf, settingsHealth } from "./health.ts";
import { observeStatus, PartnerMetrics } from "./observation.ts";

const acquirers = new Map([["acquirer", "simulator"]]);

const noCounts = { parked: 0, tripped: 0, reversalsParked: 0, reversalsPending: 0, settlementsWaiting: 0 };

/** A database that counts its queries, and answers each on request. */
function database() {
  const asked = { ping: 0, pending: 0, byPartner: 0, unowned: 0, counts: 0, partitionsAhead: 0 };
  let nowMs = 0;
  let answer: () => Promise<unknown> = () => Promise.resolve();
  const count = async <Value>(what: keyof typeof asked, value: Value) => {
    asked[what] += 1;
    await answer();
    return value;
  };
  const parts = {
    status: {
      ping: () => count("ping", undefined),
      byPartner: () => count("byPartner", []),
      count: () => count("pending", { count: 3, parked: 2, oldestMs: 0 }),
      unownedShards: () => count("unowned", [1, 2, 3, 4, 5, 6, 7, 8, 9]),
    },
    counts: { counts: () => count("counts", { ...noCounts, reversalsParked: 7 }) },
    metricsPartners: 1,
    partitions: { partitionsAhead: () => count("partitionsAhead", 14) },
  };
  return {
    asked,
    serviceStatus: serviceStatusOf(parts, () => nowMs),
    passes: (ms: number) => {
      nowMs += ms;
    },
    answersWith: (next: () => Promise<unknown>) => {
      answer = next;
    },
  };
}

const leaseMs = () => 5_000;

test("however often the metrics and /readyz are read, the database is asked once a second", async () => {
  const { asked, serviceStatus, passes } = database();
  const metrics = createMetrics();
  const worker = { status: { slots: 5, bytes: 55, rows: 33, rowsBytes: 330, unrecorded: 44, shards: 256 } };
  const lease = { remainingMs: () => 4_500 };
  const connections = { pool: { waitingCount: 6 }, engine: { waitingCount: 7 } };
  const partnerMetrics = new PartnerMetrics(metrics, 1);
  observeStatus(metrics, {
    worker,
    arrivals: { waiting: 8 },
    database: connections,
    lease,
    serviceStatus,
    partnerMetrics,
    acquirers: onlyAcquirer(new SimulatedAcquirer()),
  });
  const look = async () => {
    const [text, state] = await Promise.all([metrics.text(), health({ serviceStatus, leaseMs, acquirers })]);
    expect(text).toContain("paybell_notifications_pending 3");
    expect(text).toContain("paybell_parked_notifications 2");
    // Since 1970.
    expect(text).toMatch(/^paybell_oldest_pending_seconds 1\d{9}(\.\d+)?$/m);
    expect(text).toContain("paybell_partitions_ahead 14");
    expect(text).toContain("paybell_slots_in_use 5");
    expect(text).toContain('paybell_acquirer_links_in_use{acquirer="default"} 1');
    expect(text).toContain("paybell_queued_rows 33");
    expect(text).toContain("paybell_bytes_in_flight 55");
    expect(text).toContain("paybell_outcomes_pending 44");
    expect(text).toContain("paybell_shards_unowned 9");
    expect(text).toContain("paybell_reversals_parked 7");
    expect(text).toContain("paybell_lease_remaining_seconds 4.5\n");
    expect(text).toContain("paybell_pulls_pending 8");
    expect(text).toContain('paybell_database_statements_pending{pool="engine"} 7');
    expect(state.ready).toBe(true);
  };
  await Promise.all(Array.from({ length: 20 }, look));
  passes(999);
  await look();
  expect(asked).toEqual({ ping: 1, pending: 1, byPartner: 1, unowned: 1, counts: 1, partitionsAhead: 1 });
  passes(1);
  await look();
  expect(asked).toEqual({ ping: 2, pending: 2, byPartner: 2, unowned: 2, counts: 2, partitionsAhead: 2 });
  metrics.close();
});

test("while a query hangs all callers wait for it, and after a failure it is not repeated for a second", async () => {
  const { asked, serviceStatus, passes, answersWith } = database();
  const hanging = Promise.withResolvers<void>();
  answersWith(() => hanging.promise);
  const first = serviceStatus.ping();
  passes(60_000);
  const second = serviceStatus.ping();
  hanging.reject(new Error("away"));
  await expect(first).rejects.toThrow("away");
  await expect(second).rejects.toThrow("away");
  await expect(serviceStatus.ping()).rejects.toThrow("away");
  expect(asked.ping).toBe(1);
  answersWith(() => Promise.resolve());
  passes(1_000);
  await serviceStatus.ping();
  expect(asked.ping).toBe(2);
});

test("a slow count is repeated after ten times its duration", async () => {
  const { asked, serviceStatus, passes, answersWith } = database();
  const counting = Promise.withResolvers<void>();
  answersWith(() => counting.promise);
  const first = serviceStatus.pending();
  passes(2_000);
  counting.resolve();
  await first;
  passes(19_999);
  await serviceStatus.pending();
  expect(asked.pending).toBe(1);
  passes(1);
  await serviceStatus.pending();
  expect(asked.pending).toBe(2);
});

test("/readyz reports a database that does not answer, without waiting for it", async () => {
  const { serviceStatus, answersWith } = database();
  const never = Promise.withResolvers<void>();
  answersWith(() => never.promise);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const reading = health({ serviceStatus, leaseMs, acquirers });
  vi.advanceTimersByTime(2_000);
  const state = await reading;
  expect(state).toMatchObject({
    ready: false,
    checks: { database: { ok: false }, history: { ok: false, detail: "could not be read" } },
  });
});

test("an instance whose lease is lost is not ready, and says so", async () => {
  const { serviceStatus } = database();
  const state = await health({ serviceStatus, leaseMs: () => 0, acquirers });
  expect(state).toMatchObject({
    ready: false,
    checks: { database: { ok: true }, lease: { ok: false, detail: "lost" } },
  });
});

test("an instance that stops is not ready", async () => {
  const state = await health({ serviceStatus: database().serviceStatus, leaseMs, acquirers, isStopping: true });
  expect(state).toMatchObject({ ready: false, checks: { lease: { ok: true }, stop: { ok: false } } });
});

test.each([
  [-1, false, "warning: only -1 days are prepared"],
  [0, true, "warning: only 0 days are prepared"],
  [2, true, "warning: only 2 days are prepared"],
  [3, true, "3 days are prepared"],
])("with %i days of history prepared it is ready: %s, %s", async (days, ready, detail) => {
  const serviceStatus = { ping: async () => undefined, daysAhead: async () => days };
  expect(await health({ serviceStatus, leaseMs, acquirers })).toMatchObject({ ready, checks: { history: { detail } } });
});

test("an instance that runs commands stays ready while delivery is not fit, and says so", async () => {
  const { serviceStatus } = database();
  const deliveryOf = async (isFit: boolean) => {
    const { ready, checks } = await health({ serviceStatus, leaseMs, isDeliveryFit: () => isFit, acquirers });
    return { ready, ...checks["delivery"] };
  };
  expect(await deliveryOf(true)).toEqual({ ready: true, ok: true, detail: "sends" });
  expect(await deliveryOf(false)).toEqual({
    ready: true,
    ok: true,
    detail: "warning: its statements fail, and it sends nothing: run paybell check, and see the log",
  });
  // A process that does not send says nothing of it.
  expect((await health({ serviceStatus, leaseMs, acquirers })).checks).not.toHaveProperty("delivery");
});

test("a process that only runs commands shows that it sends nothing", async () => {
  const { serviceStatus } = database();
  const metrics = createMetrics();
  observeStatus(metrics, {
    worker: undefined,
    arrivals: { waiting: 0 },
    database: { pool: { waitingCount: 0 }, engine: { waitingCount: 0 } },
    lease: { remainingMs: () => 5_000 },
    serviceStatus,
    partnerMetrics: new PartnerMetrics(metrics, 1),
    acquirers: onlyAcquirer(new SimulatedAcquirer()),
  });
  const text = await metrics.text();
  for (const name of ["slots_in_use", "queued_rows", "bytes_in_flight", "outcomes_pending"]) {
    expect(text).toContain(`paybell_${name} 0\n`);
  }
  metrics.close();
});

const up: AcquirerHealth = { ok: true, detail: "signed on at host:5000 for 3 s" };
const down: AcquirerHealth = { ok: false, detail: "host:5000: ECONNREFUSED" };

function withHealth(health: () => AcquirerHealth): Acquirer {
  return Object.assign(new SimulatedAcquirer(), { health });
}

function several(acquirers: Readonly<Record<string, Acquirer>>): Acquirers {
  return {
    of: (name) => acquirers[name] ?? new SimulatedAcquirer(),
    has: (name) => Object.hasOwn(acquirers, name),
    names: () => Object.keys(acquirers),
  };
}

test("/readyz names the acquirer, and warns if it is unreachable", () => {
  const detailOf = (name: string, acquirer: Acquirer | null) =>
    acquirerDetails(name, onlyAcquirer(acquirer)).get("acquirer");
  expect(detailOf("simulator", new SimulatedAcquirer())).toBe("simulator");
  expect(detailOf("none: commands are refused", null)).toBe("none: commands are refused");
  const bank = withHealth(() => up);
  expect(detailOf("iso8583, bank", bank)).toBe("iso8583, bank: signed on at host:5000 for 3 s");
  const away = withHealth(() => down);
  expect(detailOf("iso8583, bank", away)).toBe("warning: iso8583, bank: host:5000: ECONNREFUSED");
});

test("each registered acquirer has its own state in /readyz, metrics and events", async () => {
  const acquirers = several({
    "": new SimulatedAcquirer(),
    first: withHealth(() => up),
    second: withHealth(() => down),
  });
  expect([...acquirerDetails("simulator", acquirers)]).toEqual([
    ["acquirer", "simulator"],
    ["acquirer first", "iso8583: signed on at host:5000 for 3 s"],
    ["acquirer second", "warning: iso8583: host:5000: ECONNREFUSED"],
  ]);
  expect(Object.fromEntries(acquirerLinks(acquirers))).toEqual({ default: true, first: true, second: false });
  const recorded: unknown[] = [];
  const watch = new AcquirerWatch(acquirers, {
    record: async ({ kind, detail }) => void recorded.push([kind, detail]),
  });
  await watch.check();
  await watch.check();
  expect(recorded).toEqual([["acquirer_down", { acquirer: "second", detail: "host:5000: ECONNREFUSED" }]]);
});

test("an acquirer without a link is asked if there is one, and a registered one that is not open is not", () => {
  const none = { ...several({}), of: () => ({}) as Acquirer };
  expect(settingsHealth("none", none).health).toMatchObject({ ok: false });
  expect(settingsHealth("simulator", several({ "": new SimulatedAcquirer() })).health).toMatchObject({ ok: true });
  expect(settingsHealth("iso8583", several({ "": withHealth(() => down) })).health).toBe(down);
  expect(registeredHealth("bank", several({ bank: withHealth(() => up) }))).toBe(up);
  expect(registeredHealth("bank", none)).toMatchObject({ ok: false });
});
