import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ServiceError } from "../../errors.ts";
import type { NotificationDetail, NotificationSummary } from "../../notifications/view.ts";
import { apiKey, HttpTestService, otherApiKey } from "../service.fixture.ts";
import {
  asItsPartnerSees,
  detailSchema,
  pulledSchema,
  reasonsOfPartner,
  searchSchema,
  summaryForPartner,
} from "./notifications.ts";
import { redeliveredSchema, redeliveryAnswer } from "./redeliveries.ts";

let service: HttpTestService;
beforeEach(async () => {
  service = await new HttpTestService().listen();
});
afterEach(() => service.close());

describe("the partner's notifications", () => {
  test("a page is pulled after a cursor, 100 at a time by default", async () => {
    const { status, body } = await service.call("GET", "/v1/notifications?after=abc");
    expect(status).toBe(200);
    expect(pulledSchema.safeParse(body).error).toBeUndefined();
    expect(service.asked.at(-1)).toEqual(["pull", service.partner.id, { after: "abc", limit: 100 }]);
  });

  test("a waiting request is answered on a new notification, with the caller's rights of that moment", async () => {
    const answer = service.call("GET", "/v1/notifications?after=now&wait=30");
    expect(await service.waiting.promise).toMatchObject({ durationMs: 30_000 });
    service.state = "paused";
    service.arrived.resolve();
    expect(await answer).toMatchObject({ status: 200, body: { next: "paused" } });
  });

  test("a waiting request is refused if its key was revoked meanwhile", async () => {
    const answer = service.call("GET", "/v1/notifications?wait=30");
    await service.waiting.promise;
    service.state = "disabled";
    service.arrived.resolve();
    expect(await answer).toMatchObject({ status: 403, body: { code: "partner_disabled" } });
  });

  test("a waiting request ends when its caller disconnects", async () => {
    const caller = new AbortController();
    const url = `http://127.0.0.1:${service.port}/v1/notifications?wait=30`;
    const answer = fetch(url, { headers: { authorization: `Bearer ${apiKey}` }, signal: caller.signal });
    const { signal } = await service.waiting.promise;
    const gone = new Promise((resolve) => signal.addEventListener("abort", resolve));
    caller.abort();
    await expect(answer).rejects.toThrow();
    await gone;
  });

  test("a waiting request is answered immediately when the service stops, and delays nothing", async () => {
    const answer = service.call("GET", "/v1/notifications?wait=30");
    await service.waiting.promise;
    const closed = service.close();
    const { status, headers } = await answer;
    expect({ status, connection: headers.get("connection") }).toEqual({ status: 200, connection: "close" });
    await closed;
  });

  test("the time of waiting does not count as processing time", async () => {
    service.arrived.resolve();
    await service.call("GET", "/v1/notifications?wait=1");
    await service.call("GET", "/v1/notifications/x");
    const { text } = await service.call("GET", "/metrics");
    expect(text).toContain('paybell_http_request_seconds_count{route="/v1/notifications/:id"} 1');
    expect(text).not.toContain('paybell_http_request_seconds_count{route="/v1/notifications"}');
    expect(text).toContain('paybell_http_requests_total{method="GET",route="/v1/notifications",status="200"} 1');
  });

  test.each([
    ["invalid_cursor", 400],
    ["cursor_from_another_history", 409],
    ["cursor_expired", 410],
    ["too_many_requests", 429],
  ] as const)("%s is %i", async (code, status) => {
    service.fails("pull", new ServiceError(code));
    expect(await service.call("GET", "/v1/notifications?after=x")).toMatchObject({ status, body: { code } });
  });

  test("its own notification is shown with its attempts, another partner's is the 404 of an unknown one", async () => {
    const path = `/v1/notifications/${service.notificationId}`;
    const { status, body } = await service.call("GET", path);
    expect(status).toBe(200);
    expect(detailSchema.safeParse(body).error).toBeUndefined();
    for (const [where, key] of [
      [path, otherApiKey],
      ["/v1/notifications/0195f000-0000-7000-8000-000000000000", undefined],
      ["/v1/notifications/x", undefined],
    ] as const) {
      const answer = await service.call("GET", where, key === undefined ? {} : { key });
      expect(answer).toMatchObject({
        status: 404,
        body: { code: "not_found", detail: "There is no such notification." },
      });
    }
  });

  test("one is sent again: to the original URL by default", async () => {
    const path = `/v1/notifications/${service.notificationId}/redeliver`;
    const { status, body } = await service.call("POST", path);
    expect(status).toBe(202);
    expect(redeliveryAnswer.safeParse(body).error).toBeUndefined();
    expect(service.asked.at(-1)).toEqual(["redeliver", service.partner.id, service.notificationId, "original"]);
    await service.call("POST", path, { json: { to: "registered" } });
    expect(service.asked.at(-1)?.[3]).toBe("registered");
    expect(await service.call("POST", path, { json: {} })).toMatchObject({ status: 202 });
    expect(await service.call("POST", path, { json: { to: "nowhere" } })).toMatchObject({
      status: 400,
      body: { code: "invalid_value", errors: [{ field: "to" }] },
    });
  });

  const own = { limit: 100, reason: ["address_refused", "dns"] };
  test.each([
    ["GET", "notifications/search?reason=address_refused", undefined, ["search", own]],
    [
      "POST",
      "redeliveries",
      { filter: { state: "parked", reason: "address_refused" } },
      ["redeliverMany", { state: "parked", reason: own.reason }, { to: "original" }],
    ],
    ["GET", "redeliveries/r", undefined, ["redelivery", "r"]],
  ] as const)("%s /v1/%s is of its own alone", async (method, path, json, [what, asked, ...others]) => {
    await service.call(method, `/v1/${path}`, json && { json });
    const { id } = service.partner;
    const ofPartner = typeof asked === "string" ? [asked, id] : [{ ...asked, partnerId: id }];
    expect(service.asked.at(-1)).toEqual([what, ...ofPartner, ...others]);
  });

  test("a test notification is created", async () => {
    const { status, body } = await service.call("POST", "/v1/test-notification");
    expect(status).toBe(202);
    expect(body).toMatchObject({ state: "pending", transactionId: null });
  });
});

describe("the operator's notifications", () => {
  test("one is sent again, of any partner", async () => {
    const path = `/operator/v1/notifications/${service.notificationId}/redeliver`;
    const { status, body } = await service.call("POST", path);
    expect(status).toBe(202);
    expect(redeliveryAnswer.safeParse(body).error).toBeUndefined();
    expect(service.asked.at(-1)).toEqual(["redeliver", undefined, service.notificationId, "original"]);
    await service.call("POST", path, { json: { to: "registered" } });
    expect(service.asked.at(-1)?.[3]).toBe("registered");
    expect(await service.call("POST", path, { key: apiKey })).toMatchObject({ status: 401 });
    const unknown = await service.call("POST", "/operator/v1/notifications/x/redeliver");
    expect(unknown).toMatchObject({ status: 404, body: { code: "not_found" } });
  });

  test("are searched by every filter", async () => {
    const from = "2026-01-31T00:00:00Z";
    const query = new URLSearchParams({
      partner: service.partner.id,
      state: "parked",
      reason: "timeout",
      q: "B1",
      from,
      to: "2026-02-01T07:00:00+07:00",
    });
    const { status, body } = await service.call("GET", `/operator/v1/notifications?${query}&limit=5`);
    expect(status).toBe(200);
    expect(searchSchema.safeParse(body).error).toBeUndefined();
    expect(service.asked.at(-1)?.[1]).toEqual({
      partnerId: service.partner.id,
      state: "parked",
      reason: "timeout",
      q: "B1",
      from,
      to: "2026-02-01T07:00:00+07:00",
      limit: 5,
    });
  });

  test("one is shown, of any partner", async () => {
    const path = `/operator/v1/notifications/${service.notificationId}`;
    expect(await service.call("GET", path)).toMatchObject({ status: 200, body: { attempts: [], events: [] } });
    expect(await service.call("GET", "/operator/v1/notifications/x")).toMatchObject({ status: 404 });
  });

  test("many are sent again, or only counted", async () => {
    const filter = { partner: service.partner.id, state: "parked", reason: "timeout" };
    const { status, body } = await service.call("POST", "/operator/v1/redeliveries", {
      json: { filter, dryRun: true },
    });
    expect(status).toBe(200);
    expect(redeliveredSchema.safeParse(body).error).toBeUndefined();
    const selected = { partnerId: service.partner.id, state: "parked", reason: "timeout" };
    expect(service.asked.at(-1)).toEqual(["redeliverMany", selected, { to: "original", dryRun: true }]);
    await service.call("POST", "/operator/v1/redeliveries", { json: { filter: {}, to: "registered" } });
    expect(service.asked.at(-1)).toEqual(["redeliverMany", {}, { to: "registered" }]);
  });

  test("a redelivery without a filter, or with an unknown one, is refused", async () => {
    const refused = async (json: unknown) => (await service.call("POST", "/operator/v1/redeliveries", { json })).body;
    expect(await refused({})).toMatchObject({ code: "missing_field", errors: [{ field: "filter" }] });
    expect(await refused({ filter: { mid: "x" } })).toMatchObject({ errors: [{ field: "filter.mid" }] });
    expect(await refused({ filter: { partner: "x" } })).toMatchObject({ errors: [{ field: "filter.partner" }] });
  });

  test("all problems of a redelivery are named together", async () => {
    const json = { filter: { partner: "x", state: "accepted", reason: 5, mid: "x" }, to: "both", more: 1 };
    const { status, body } = await service.call("POST", "/operator/v1/redeliveries", { json });
    expect(status).toBe(400);
    const errors = body["errors"] as { field: string; code: string }[];
    expect(new Set(errors.map(({ field, code }) => `${field} ${code}`))).toEqual(
      new Set([
        "filter.partner unknown_partner",
        "filter.from missing_field",
        "filter.reason wrong_type",
        "filter.reason invalid_value",
        "filter.mid unknown_field",
        "to invalid_value",
        "more unknown_field",
      ]),
    );
  });
});

type Attempt = NotificationDetail["attempts"][number];

/** A failed attempt as its partner sees it. */
function seen(attempt: Partial<Attempt>): Attempt | undefined {
  const recorded = {
    url: "https://db.internal/ipn",
    address: "10.20.30.40",
    httpStatus: null,
    answer: null,
    ...attempt,
  };
  const detail = { lastReason: null, waiting: null, attempts: [recorded] } as unknown as NotificationDetail;
  return asItsPartnerSees(detail).attempts[0];
}

test.each([
  ["address_refused", "db.internal: 10.20.30.40 is a private address: callbackAddresses must name a block for it."],
  ["connect", "connect ECONNREFUSED 10.20.30.40:443."],
  ["connect_timeout", "connect ETIMEDOUT 10.20.30.40:443."],
  ["internal", "EHOSTUNREACH 10.20.30.40"],
] as const)(
  "a partner sees that an attempt failed by %s, and no address that the operator looked up",
  (reason, detail) => {
    const attempt = seen({ reason, detail });
    expect(attempt).toMatchObject({ reason, detail: expect.stringMatching(/\S/) });
    expect(JSON.stringify(attempt)).not.toMatch(/\d+\.\d+\.\d+\.\d+/);
  },
);

test("a partner cannot tell a name that does not resolve from one whose address is refused", () => {
  const refused = seen({ reason: "address_refused", detail: "db.internal: 10.20.30.40 is a private address." });
  const unknown = seen({ reason: "dns", detail: "db.internal cannot be resolved: ENOTFOUND by 10.0.0.2." });
  expect(unknown).toEqual(refused);
  const circuit = { because: "circuit", since: null, endpointId: null, target: null, reason: "dns", after: null };
  const listed = summaryForPartner({ lastReason: "dns", waiting: circuit } as NotificationSummary);
  expect(listed).toMatchObject({ lastReason: "address_refused", waiting: { reason: "address_refused" } });
  expect(reasonsOfPartner("address_refused")).toEqual(["address_refused", "dns"]);
  expect(reasonsOfPartner("dns")).toEqual([]);
});

test("the partner sees what its own server did", () => {
  const detail = "certificate has expired (CERT_HAS_EXPIRED).";
  expect(seen({ reason: "tls", detail })?.detail).toBe(detail);
  expect(seen({ httpStatus: 500, reason: "status", detail: "Answered 500.", answer: "oh no" })).toMatchObject({
    httpStatus: 500,
    detail: "Answered 500.",
    answer: "oh no",
  });
});
