import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { readConfig } from "../packages/server/src/config/config.ts";
import { makeAuthority } from "../packages/server/src/delivery/transport/transport.fixture.ts";
import { tracingFindings } from "../packages/server/src/programs/check.ts";
import { type Collector, type ReceivedSpan, startCollector } from "./support/collector.ts";
import { reportedSale, sale } from "./support/commands.ts";
import { createDatabase } from "./support/database.ts";
import { spawnInstance, spawnPaybell } from "./support/instance.ts";
import { freePort } from "./support/ports.ts";
import { eventually, operatorToken, startTestService, type TestPartner, type WholeService } from "./support/service.ts";

const collectorToken = "collector-token-of-the-tests";
const tellLoaded = pathToFileURL(join(import.meta.dirname, "support/instance-fixtures/tell-loaded.ts")).href;

let collector: Collector;
let service: WholeService;
let partner: TestPartner;
beforeAll(async () => {
  collector = await startCollector();
  const env = { ...tracedTo(collector.url), PAYBELL_ACQUIRER_TIMEOUT_MS: "300" };
  vi.stubEnv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.name=other");
  service = await startTestService({ env });
  vi.unstubAllEnvs();
  partner = await service.register({ retry: [1, 1, 30] });
});
afterAll(async () => {
  await service.stop();
  await collector.close();
});

function tracedTo(url: string): NodeJS.ProcessEnv {
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${collectorToken}`,
    OTEL_SERVICE_NAME: "payments",
  };
}

/** A caller's span. */
function caller(flags = "01") {
  const traceId = randomBytes(16).toString("hex");
  const spanId = randomBytes(8).toString("hex");
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-${flags}` } };
}

/** The trace of what happens to a transaction by itself. */
function traceOf(transactionId: unknown): string {
  return String(transactionId).replaceAll("-", "");
}

function idsOf({ traceId, spanId }: Pick<ReceivedSpan, "traceId" | "spanId">) {
  return { traceId, spanId };
}

function only(spans: readonly ReceivedSpan[], name: string): ReceivedSpan {
  const found = spans.filter((span) => span.name === name);
  if (found[0] === undefined || found.length > 1) {
    throw new Error(`${found.length} spans ${name} among ${spans.map((span) => span.name).join(", ")}`);
  }
  return found[0];
}

test("a traced service also refuses a command whose acquirer is away, before anything is written", async () => {
  const profile = JSON.parse(
    await readFile(join(import.meta.dirname, "../docs/operator/acquirer-profile.json"), "utf8"),
  );
  const path = `/operator/v1/partners/${partner.id}/terminals/T0000009`;
  const registration = { profile: { ...profile, mac: null }, hosts: [`127.0.0.1:${await freePort()}`], tls: "off" };
  expect((await service.operator("PUT", "/operator/v1/acquirers/away", registration)).status).toBe(200);
  const terminal = { mid: "M00000000000001", acquirer: "away" };
  expect((await service.operator("PUT", path, terminal)).status).toBe(200);
  const { status, body } = await partner.run(sale({ tid: "T0000009" }));
  expect([status, body["code"]]).toEqual([503, "acquirer_unreachable"]);
});

test("a Sale is one trace from its caller to its commit, and its notification another with each attempt", async () => {
  const from = caller();
  const { status, body, text } = await partner.run(sale(), from.headers);
  expect(status, text).toBe(200);
  await collector.received("the request", ({ name, traceId }) => name.startsWith("POST") && traceId === from.traceId);
  await collector.received(
    "the attempt",
    ({ name, traceId }) => /^attempt/.test(name) && traceId === traceOf(body["id"]),
  );
  const waited = collector.spans.filter(({ traceId }) => traceId === from.traceId);
  const later = collector.spans.filter(({ traceId }) => traceId === traceOf(body["id"]));
  expect(waited.map(({ name }) => name).sort()).toEqual(
    ["POST /v1/commands", "SALE", "acquirer SALE", "commit completions", "commit inits"].sort(),
  );
  expect(later.map(({ name }) => name).sort()).toEqual(["attempt SALE", "notification SALE"]);

  const request = only(waited, "POST /v1/commands");
  const command = only(waited, "SALE");
  const notification = only(later, "notification SALE");
  const attempt = only(later, "attempt SALE");
  expect(request).toMatchObject({ parentSpanId: from.spanId, attributes: { "http.response.status_code": 200 } });
  expect(only(waited, "commit inits").parentSpanId).toBe(request.spanId);
  expect(command).toMatchObject({
    parentSpanId: request.spanId,
    links: [idsOf(notification)],
    attributes: {
      "paybell.transaction": body["id"],
      "paybell.partner": partner.id,
      "paybell.state": "SUCCESS",
      "paybell.response_code": "00",
    },
  });
  expect(only(waited, "acquirer SALE")).toMatchObject({
    parentSpanId: command.spanId,
    attributes: { "paybell.acquirer": "default", "paybell.response_code": "00" },
  });
  expect(only(waited, "commit completions")).toMatchObject({
    parentSpanId: command.spanId,
    attributes: { "paybell.commit.rows": 1 },
  });
  expect(notification.parentSpanId).toBeUndefined();
  expect(notification.links).toEqual([expect.objectContaining(idsOf(command))]);
  expect(attempt).toMatchObject({
    parentSpanId: notification.spanId,
    attributes: {
      "paybell.attempt": 1,
      "paybell.outcome": "accepted",
      "paybell.transaction": body["id"],
      "http.response.status_code": 204,
    },
  });
  for (const span of [...waited, ...later]) {
    expect(span.status.code, span.name).toBe(0);
    expect(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano), span.name).toBe(true);
  }
  expect(collector.headers[0]).toMatchObject({ authorization: `Bearer ${collectorToken}`, path: "/v1/traces" });
  // Further attributes come from OpenTelemetry's own setting, which renames nothing.
  expect(collector.resources[0]).toMatchObject({
    "service.name": "payments",
    "service.version": expect.any(String),
    "deployment.environment.name": "test",
  });
});

test("a retried delivery has one span for each attempt, with its number, outcome and reason", async () => {
  partner.server.answers(503, 500);
  const { body } = await partner.run(sale());
  const isOne = ({ name, traceId }: ReceivedSpan) => name === "attempt SALE" && traceId === traceOf(body["id"]);
  const attempts = await collector.received("three attempts", isOne, 3);
  const shown = attempts.map(({ attributes, status }) => [
    attributes["paybell.attempt"],
    attributes["paybell.outcome"],
    attributes["http.response.status_code"],
    attributes["error.type"],
    status.code,
  ]);
  expect(shown).toEqual([
    [1, "retry", 503, "status", 2],
    [2, "retry", 500, "status", 2],
    [3, "accepted", 204, undefined, 0],
  ]);
  expect(new Set(attempts.map(({ parentSpanId }) => parentSpanId)).size).toBe(1);
});

test("a declined command, a refused one and a wrong key differ in the trace", async () => {
  const declined = caller();
  await partner.run(sale({ card: { token: "tok_decline_54" } }), declined.headers);
  const [command] = await collector.received(
    "it",
    ({ name, traceId }) => name === "SALE" && traceId === declined.traceId,
  );
  expect(command?.attributes).toMatchObject({ "paybell.state": "ERROR", "paybell.response_code": "54" });

  const refused = caller();
  const stranger = caller();
  await partner.call("POST", "/v1/commands", { key: "pb_wrong", json: sale(), headers: stranger.headers });
  await partner.run(sale({ amount: "-1" }), refused.headers);
  await collector.received("the refused one", ({ traceId }) => traceId === refused.traceId);
  expect(collector.spans.filter(({ traceId }) => traceId === refused.traceId)).toMatchObject([
    { name: "POST /v1/commands", attributes: { "http.response.status_code": 400 } },
  ]);
  expect(collector.spans.filter(({ traceId }) => traceId === stranger.traceId)).toEqual([]);
});

test("a Reversal of a command without an answer is in the trace of its transaction or its command", async () => {
  const from = caller();
  const { body } = await partner.run(sale({ card: { token: "tok_timeout" } }), from.headers);
  const isReversal = ({ name, attributes }: ReceivedSpan) =>
    name === "acquirer REVERSAL" && attributes["paybell.transaction"] === body["id"];
  const [reversal] = await collector.received("the Reversal", isReversal);
  const [asked] = await collector.received(
    "the exchange without an answer",
    ({ name, traceId }) => name === "acquirer SALE" && traceId === from.traceId,
  );
  expect(asked).toMatchObject({ status: { code: 2 }, attributes: { "error.type": "NoAnswer" } });
  expect([from.traceId, traceOf(body["id"])]).toContain(reversal?.traceId);
});

test("a request that its caller does not sample has no span, and its notification is decided on its own", async () => {
  const unsampled = caller("00");
  const { body } = await partner.run(sale(), unsampled.headers);
  await collector.received(
    "the attempt",
    ({ name, traceId }) => /^attempt/.test(name) && traceId === traceOf(body["id"]),
  );
  const later = caller();
  await partner.call("GET", "/v1/self", { headers: later.headers });
  await collector.received("what is exported after it", ({ traceId }) => traceId === later.traceId);
  expect(collector.spans.filter(({ traceId }) => traceId === unsampled.traceId)).toEqual([]);
  const notification = only(
    collector.spans.filter(({ traceId }) => traceId === traceOf(body["id"])),
    "notification SALE",
  );
  expect(notification.links ?? []).toEqual([]);
});

test("a switch's report is in the trace of its request, and its notification links to that", async () => {
  const [id] = await service.report([reportedSale(partner.id)]);
  await collector.received("the attempt", ({ name, traceId }) => /^attempt/.test(name) && traceId === traceOf(id));
  const [commit] = await collector.received(
    "its commit",
    ({ name, attributes }) => name === "commit completions" && attributes["paybell.transaction"] === id,
  );
  const [request] = await collector.received("its request", ({ spanId }) => spanId === commit?.parentSpanId);
  expect(request?.name).toBe("POST /operator/v1/completions");
  const notification = only(
    collector.spans.filter(({ traceId }) => traceId === traceOf(id)),
    "notification SALE",
  );
  expect(notification.links).toEqual([expect.objectContaining(request === undefined ? {} : idsOf(request))]);
});

test("no exported byte has a card number, a token, a key, an amount or the path of a callback URL", async () => {
  const secretive = await service.register({ callBackUrl: `${partner.server.url}?token=callback-secret`, retry: [1] });
  const cardNumber = "4111111111111111";
  const from = caller();
  const headers = { ...from.headers, tracestate: `vendor=${cardNumber}`, baggage: `pan=${cardNumber}` };
  await secretive.run(sale({ amount: "987654321" }), headers);
  await secretive.run(sale({ billId: cardNumber, card: { number: cardNumber, holder: cardNumber } }), headers);
  await secretive.call("GET", `/v1/transactions/${cardNumber}?reqId=${cardNumber}`, { headers: caller().headers });
  await secretive.call("POST", "/v1/commands", {
    body: `{"command": "${cardNumber}`,
    headers: { "content-type": "application/json", ...caller().headers },
  });
  await collector.received("the last request", ({ name }) => name === "GET /v1/transactions/:id");
  await collector.received(
    "an attempt for that partner",
    ({ name, attributes }) => /^attempt/.test(name) && attributes["paybell.partner"] === secretive.id,
  );
  const exported = collector.bodies.join("\n");
  const secrets = [partner, secretive].flatMap(({ secrets: its }) => Object.values(its));
  const others = ["callback-secret", "tok_approve", "411111******1111", operatorToken, collectorToken, "987654321"];
  for (const secret of [...secrets, ...others, cardNumber, cardNumber.slice(0, 12)]) {
    expect(exported.includes(secret), secret).toBe(false);
  }
  expect(exported).toContain(secretive.id);
  expect(service.logged()).not.toContain(collectorToken);
});

test("another instance sends attempts into the same trace, and one that stops exports its last spans", async () => {
  const database = await createDatabase();
  const masterKey = randomBytes(32);
  const own = await startCollector();
  const shared = { database, masterKey, env: tracedTo(own.url) };
  const api = await startTestService({ ...shared, role: "api" });
  const its = await api.register();
  const { body } = await its.run(sale());
  await api.service.stop();
  // It was flushed: nothing is waited for.
  const notification = only(own.spans, "notification SALE");
  expect(notification.traceId).toBe(traceOf(body["id"]));
  const delivery = await startTestService({ ...shared, role: "delivery" });
  const [attempt] = await own.received("the attempt", ({ name }) => name === "attempt SALE");
  expect(attempt).toMatchObject({ traceId: notification.traceId, parentSpanId: notification.spanId });
  await delivery.stop();
  await api.stop();
  await own.close();
  await database.drop();
});

test("a collector that refuses or is gone costs spans, which are counted, and one line for an outage", async () => {
  const own = await startCollector();
  own.answers(400);
  const traced = await startTestService({ env: tracedTo(own.url) });
  onTestFinished(async () => {
    await traced.stop();
    await own.close();
  });
  const its = await traced.register();
  const linesWith = (text: string) => traced.logged().split(text).length - 1;
  for (const exports of [1, 2, 3]) {
    expect((await its.run(sale())).status).toBe(200);
    await eventually("an export", async () => (own.bodies.length >= exports ? true : undefined));
  }
  const { text } = await traced.operator("GET", "/metrics");
  expect(Number(/^paybell_trace_spans_dropped_total\{reason="not_accepted"\} (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(
    0,
  );
  expect(linesWith("traces cannot be exported")).toBe(1);
  own.answers(200);
  expect((await its.run(sale())).status).toBe(200);
  await own.received("spans again", ({ name }) => name === "SALE");
  await eventually("the end of the outage", async () => linesWith("traces are exported again") || undefined);
  expect(linesWith("traces cannot be exported")).toBe(1);
});

test("commands, deliveries and the stop go on while nothing listens at the collector's address", async () => {
  vi.stubEnv("OTEL_EXPORTER_OTLP_TIMEOUT", "500");
  onTestFinished(() => void vi.unstubAllEnvs());
  const traced = await startTestService({ env: tracedTo(`http://127.0.0.1:${await freePort()}`) });
  const its = await traced.register();
  expect((await its.run(sale())).status).toBe(200);
  await its.server.next(1);
  await eventually("spans to be counted as dropped", async () => {
    const { text } = await traced.operator("GET", "/metrics");
    return /^paybell_trace_spans_dropped_total\{reason="not_accepted"\} [1-9]/m.test(text) || undefined;
  });
  expect((await its.run(sale())).status).toBe(200);
  await traced.stop();
});

test("`paybell check` says whether the collector accepts traces, without its headers", async () => {
  const own = await startCollector();
  onTestFinished(() => own.close());
  expect(await tracingFindings(readConfig(tracedTo(own.url)))).toMatchObject([{ level: "ok" }]);
  own.answers(401);
  const check = spawnPaybell(["check", "--json"], tracedTo(own.url));
  await check.exited;
  expect(check.output()).not.toContain(collectorToken);
  expect(JSON.parse(check.output()).findings).toContainEqual({
    level: "warning",
    what: "traces",
    detail: expect.stringContaining("Unauthorized"),
    remedy: expect.stringContaining("4318"),
  });
  expect(own.headers[0]).toMatchObject({ authorization: `Bearer ${collectorToken}` });
});

test("the exporter trusts the authority that OpenTelemetry's own setting names, and no other", async () => {
  const authority = await makeAuthority("Collectors of a test");
  const own = await startCollector(await authority.issue("localhost"));
  const folder = await mkdtemp(join(tmpdir(), "paybell-traces-"));
  onTestFinished(async () => {
    await own.close();
    await rm(folder, { recursive: true });
  });
  const caFile = join(folder, "ca.pem");
  await writeFile(caFile, authority.cert);
  const config = readConfig(tracedTo(own.url));
  // The exporter reads its further settings itself.
  vi.stubEnv("OTEL_EXPORTER_OTLP_TIMEOUT", "1000");
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(await tracingFindings(config)).toMatchObject([{ level: "warning" }]);
  expect(own.bodies).toEqual([]);
  vi.stubEnv("OTEL_EXPORTER_OTLP_TIMEOUT", "600000");
  vi.stubEnv("OTEL_EXPORTER_OTLP_CERTIFICATE", caFile);
  expect(await tracingFindings(config)).toMatchObject([{ level: "ok" }]);
});

// The library of metrics loads the interface, @opentelemetry/api, in any case.
test("without the setting no module of OpenTelemetry is loaded, by a command and its delivery neither", async () => {
  const loaded = async (env: NodeJS.ProcessEnv) => {
    const database = await createDatabase();
    const instance = await spawnInstance({
      databaseUrl: database.serviceUrl,
      masterKey: randomBytes(32),
      callsLoopback: true,
      env: { NODE_OPTIONS: `--import=${tellLoaded}`, ...env },
    });
    const its = await instance.register();
    expect((await its.run(sale())).status).toBe(200);
    await its.server.next(1);
    instance.signal("SIGTERM");
    expect(await instance.exited, instance.output()).toBe(0);
    await its.server.close();
    await database.drop();
    return new Set(instance.output().match(/^loaded @opentelemetry\/(?!api ).*$/gm));
  };
  expect(await loaded({})).toEqual(new Set());
  const main = await loaded(tracedTo(collector.url));
  expect(main).toContain("loaded @opentelemetry/sdk-trace in main");
  expect([...main].filter((line) => line.endsWith("in a worker"))).toEqual([]);
});
