import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { webhookKey, webhookSignatureMatches } from "@paybell/contract";
import { afterAll, describe, expect, test } from "vitest";
import { reportedSale, sale } from "./support/commands.ts";
import { eventually, notificationIdOf, startTestService } from "./support/service.ts";

const alertSecret = `whsec_${randomBytes(32).toString("base64")}`;

interface AlertCall {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

interface Attempt {
  readonly attemptNo: number;
  readonly startedAt: string;
  readonly httpStatus: number | null;
  readonly reason: string | null;
  readonly answer: string | null;
  readonly url: string;
  readonly address: string | null;
}

const alerts: AlertCall[] = [];
const alertServer = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  alerts.push({ headers: request.headers, body });
  response.writeHead(204).end();
});

await once(alertServer.listen(0, "127.0.0.1"), "listening");
const { port } = alertServer.address() as AddressInfo;
const alertUrl = `http://127.0.0.1:${port}/alerts`;
const service = await startTestService({
  env: {
    PAYBELL_ALERT_URL: alertUrl,
    PAYBELL_ALERT_SECRET: alertSecret,
    PAYBELL_ALERT_ADDRESSES: "127.0.0.1/32",
    PAYBELL_ALERT_QUIET_SECONDS: "0",
  },
});
afterAll(async () => {
  await service.stop();
  const closed = once(alertServer.close(), "close");
  alertServer.closeAllConnections();
  await closed;
});

// Each has a partner of its own, and most of its time waits for a schedule.
describe.concurrent("a notification", () => {
  test("that fails twice and is then accepted has every attempt recorded", async () => {
    const partner = await service.register({ retry: [1, 1, 30] });
    partner.server.answers("reset", { status: 500, body: "out of ⟨ink⟩" });
    const { id, body } = await partner.notify(sale());
    const deliveries = await partner.server.next(3);
    expect(deliveries.map((delivery) => notificationIdOf(delivery))).toEqual([id, id, id]);
    expect(deliveries.map(({ headers }) => headers["paybell-attempt"])).toEqual(["1", "2", "3"]);
    expect(new Set(deliveries.map(({ received }) => received?.ipn.id))).toEqual(new Set([body["id"]]));
    // The encryption is fresh at each attempt, and so is the signature of the headers.
    expect(new Set(deliveries.map(({ body: bytes }) => bytes.toString())).size).toBe(3);

    const settled = await partner.settled(id, "accepted");
    expect(settled).toMatchObject({ attemptsMade: 3, lastReason: null, nextAttemptAt: null, command: "SALE" });
    const attempts = settled["attempts"] as Attempt[];
    expect(attempts.map(({ attemptNo, httpStatus, reason }) => [attemptNo, httpStatus, reason])).toEqual([
      [1, null, "reset"],
      [2, 500, "status"],
      [3, 204, null],
    ]);
    expect(attempts.map(({ answer }) => answer)).toEqual([null, "out of ⟨ink⟩", null]);
    for (const { url, address } of attempts)
      expect({ url, address }).toEqual({ url: partner.server.url, address: null });
    // The operator sees the same, and which address it was.
    const operators = await service.operator("GET", `/operator/v1/notifications/${id}`);
    const withAddress = attempts.map((attempt) => ({ ...attempt, address: "127.0.0.1" }));
    expect(operators.body).toEqual({ ...settled, attempts: withAddress, events: [] });
  });

  test("is parked at the end of the schedule, alerted, and delivered once the partner asks for it", async () => {
    const partner = await service.register({ retry: [1, 1] });
    partner.server.answersAlways(500);
    const { id } = await partner.notify(sale());
    const parked = await partner.settled(id, "parked");
    // On a slow machine the schedule may be over before its last attempt.
    const made = Number(parked["attemptsMade"]);
    expect(parked).toMatchObject({ lastReason: "status", nextAttemptAt: null });
    expect((parked["attempts"] as Attempt[]).at(-1)?.attemptNo).toBe(made);

    const alert = await eventually("the alert", async () => alerts.find(({ body: text }) => text.includes(id)));
    expect(JSON.parse(alert.body)).toMatchObject({ kind: "parked", partnerId: partner.id, subjectId: id });
    expect(Object.keys(JSON.parse(alert.body)).sort()).toEqual((await namesOfAlert()).toSorted());
    const inDetail = ["attemptsMade", "detail", "httpStatus", "reason"];
    expect(Object.keys(JSON.parse(alert.body).detail).sort()).toEqual(inDetail);
    const header = (name: string) => String(alert.headers[name]);
    const key = webhookKey(alertSecret);
    const [alertId, timestamp] = [header("webhook-id"), header("webhook-timestamp")];
    const bytes = Buffer.from(alert.body);
    expect(webhookSignatureMatches(header("webhook-signature"), alertId, timestamp, bytes, [key])).toBe(true);

    partner.server.answersAlways(204);
    const asked = await partner.call("POST", `/v1/notifications/${id}/redeliver`, { json: {} });
    expect(asked.status, asked.text).toBe(202);
    const settled = await partner.settled(id, "accepted");
    // The numbers continue, the same for both sides.
    expect((settled["attempts"] as Attempt[]).map(({ attemptNo, httpStatus }) => [attemptNo, httpStatus])).toEqual([
      ...Array.from({ length: made }, (_, nth) => [nth + 1, 500]),
      [made + 1, 204],
    ]);
    expect(settled["attemptsMade"]).toBe(made + 1);
    expect(partner.server.deliveries.at(-1)?.headers["paybell-attempt"]).toBe(String(made + 1));
    await partner.listed(id);
    const { body: page } = await partner.call("GET", "/v1/notifications?limit=500");
    const listed = (page["items"] as { id: string; headers: Record<string, string> }[]).find((item) => item.id === id);
    expect(listed?.headers["paybell-attempt"]).toBe(String(made + 2));
  });

  test("that is pending is sent now, whatever its server asked for, and the schedule stays at its step", async () => {
    const partner = await service.register({ retry: [3_600, 86_400] });
    partner.server.answersAlways({ status: 503, headers: { "retry-after": "1800" } });
    const { id } = await partner.notify(sale());
    const untilMs = async () => {
      const { body: detail } = await partner.call("GET", `/v1/notifications/${id}`);
      return Date.parse(String(detail["nextAttemptAt"])) - Date.now();
    };
    for (let made = 1; made <= 3; made += 1) {
      await eventually("the attempt to be recorded", async () => {
        const { body: detail } = await partner.call("GET", `/v1/notifications/${id}`);
        return detail["attemptsMade"] === made ? true : undefined;
      });
      // The second step is a day.
      expect(await untilMs()).toBeLessThan(2 * 3_600_000);
      const asked = await partner.call("POST", `/v1/notifications/${id}/redeliver`, { json: {} });
      expect(asked).toMatchObject({ status: 202, body: { state: "pending", held: null } });
    }
    partner.server.answersAlways(204);
    await partner.call("POST", `/v1/notifications/${id}/redeliver`, { json: {} });
    await partner.settled(id, "accepted");
  });

  test("that is parked is redelivered by the operator, after a dry run that sends nothing", async () => {
    const partner = await service.register({ retry: [1], callBackUrl: null });
    // Without any callback URL nothing is sent, and everything is kept.
    const ids = await service.report([reportedSale(partner.id), reportedSale(partner.id), reportedSale(partner.id)]);
    const filter = { partner: partner.id };
    const dryRun = await eventually("three to be parked", async () => {
      const { body } = await service.operator("POST", "/operator/v1/redeliveries", { filter, dryRun: true });
      return body["matched"] === 3 ? body : undefined;
    });
    expect(dryRun).toMatchObject({ matched: 3, redelivered: 0 });
    const search = await service.operator("GET", `/operator/v1/notifications?partner=${partner.id}&state=parked`);
    const items = search.body["items"] as { id: string; transactionId: string; lastReason: string }[];
    expect(items.map(({ transactionId }) => transactionId).sort()).toEqual([...ids].sort());
    expect(items.map(({ lastReason }) => lastReason)).toEqual(items.map(() => "no_callback_url"));
    expect(partner.server.deliveries).toHaveLength(0);

    const corrected = await service.operator("PATCH", `/operator/v1/partners/${partner.id}`, {
      callBackUrl: partner.server.url,
    });
    expect(corrected.status, corrected.text).toBe(200);
    const redelivered = await service.operator("POST", "/operator/v1/redeliveries", { filter, to: "registered" });
    expect(redelivered.body).toMatchObject({ matched: 3, redelivered: 3 });
    const deliveries = await partner.server.next(3);
    expect(deliveries.map(({ received }) => received?.ipn.id).sort()).toEqual([...ids].sort());
  });

  test("that was accepted can be sent once more, with the same id and the same IPN", async () => {
    const partner = await service.register();
    const { id } = await partner.notify(sale(), "accepted");
    const asked = await partner.call("POST", `/v1/notifications/${id}/redeliver`, { json: { to: "registered" } });
    expect(asked.status, asked.text).toBe(202);
    const [first, second] = await partner.server.next(2);
    expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
    expect(second?.received?.ipn).toEqual(first?.received?.ipn);
  });
});

/** The fields of an alert, as docs/operator/runbook.md lists them. */
async function namesOfAlert(): Promise<readonly string[]> {
  const page = await readFile(join(import.meta.dirname, "../docs/operator/runbook.md"), "utf8");
  return /A URL gets\s+JSON,\s+`\{([^}]*)\}`/.exec(page)?.[1]?.split(", ") ?? [];
}
