import { afterEach, beforeEach, expect, test } from "vitest";
import { HttpTestService } from "./service.fixture.ts";

let service: HttpTestService;
beforeEach(async () => {
  service = await new HttpTestService().listen();
});
afterEach(() => service.close());

test.each([
  ["GET", "/operator/v1/transactions?acquirer=%00", undefined, "acquirer"],
  ["GET", "/operator/v1/acquirers/%00", undefined, "name"],
  ["DELETE", "/operator/v1/acquirers/a%00b", undefined, "name"],
  ["PUT", "/operator/v1/acquirers/a", { profile: { name: "\0" }, hosts: ["bank.example:1"] }, "profile.name"],
  [
    "PUT",
    "/operator/v1/acquirers/a",
    { profile: { fields: { "\ud800": 1 } }, hosts: ["a:1"] },
    "profile.fields.\ufffd",
  ],
] as const)("%s %s with NUL or half of a surrogate pair is 400", async (method, path, json, field) => {
  const { status, body } = await service.call(method, path, json === undefined ? {} : { json });
  expect({ status, ...body }).toMatchObject({ status: 400, code: "invalid_text", errors: [{ field }] });
});

test("a setting of a partner with NUL or half of a surrogate pair is 400", async () => {
  for (const schemes of [{ "\0": "a" }, { a: "\ud800" }]) {
    const path = `/operator/v1/partners/${service.partner.id}`;
    const { status, body } = await service.call("PATCH", path, { json: { reports: { schemes } } });
    expect({ status, ...body }).toMatchObject({ status: 400, code: "invalid_value" });
  }
});

test.each([
  ["transactions?state=success", "state must be one of INIT, SUCCESS, ERROR"],
  ["batches?state=open", "state must be one of CLOSED"],
  ["settlements?state=settled", "state must be one of waiting, sending, uploading"],
  ["reversals?state=parked", "state must be one of PENDING, DONE, PARKED"],
  ["events?state=lost", "state must be one of parked, in_doubt, "],
  ["notifications?lastFour=41111", "lastFour must be four digits."],
  ["notifications?from=today", "from must be a time such as 2026-01-31T00:00:00Z."],
  ["audit?after=0", "after must be `next` of a page."],
])("a search of %s is 400 and names the form", async (search, message) => {
  const { status, body } = await service.call("GET", `/operator/v1/${search}`);
  expect({ status, ...body }).toMatchObject({
    status: 400,
    code: "invalid_value",
    errors: [{ message: expect.stringContaining(message) }],
  });
});

test.each(["transactions/%", "transactions/%/chain", "transactions?after=%", "events?subject=%"])(
  "GET /operator/v1/%s takes the id of a switch, whose UUIDs need no version",
  async (path) => {
    const { status } = await service.call(
      "GET",
      `/operator/v1/${path.replace("%", "00000000-0000-0000-1111-00000000002a")}`,
    );
    expect(status).not.toBe(400);
  },
);

test.each([
  ["v1/endpoints?state=ajar", "state", "invalid_value"],
  ["v1/endpoints?limit=0", "limit", "invalid_value"],
  ["v1/endpoints?after=x", "after", "invalid_value"],
  ["v1/endpoints?partner=x", "partner", "unknown_field"],
  ["v1/notifications?limit=0", "limit", "invalid_value"],
  ["v1/notifications?limit=501", "limit", "invalid_value"],
  ["v1/notifications?limit=1.5", "limit", "invalid_value"],
  ["v1/notifications?limit=many", "limit", "invalid_value"],
  ["v1/notifications?limit=", "limit", "invalid_value"],
  ["v1/notifications?wait=0", "wait", "invalid_value"],
  ["v1/notifications?wait=", "wait", "invalid_value"],
  ["v1/notifications?wait=31", "wait", "invalid_value"],
  ["v1/notifications?wait=soon", "wait", "invalid_value"],
  ["v1/notifications?cursor=x", "cursor", "unknown_field"],
  [`v1/notifications?after=${"x".repeat(513)}`, "after", "too_long"],
  ["operator/v1/notifications?state=lost", "state", "invalid_value"],
  ["operator/v1/notifications?from=yesterday", "from", "invalid_value"],
  ["operator/v1/notifications?from=2026-01-31", "from", "invalid_value"],
  ["operator/v1/notifications?partner=x", "partner", "unknown_partner"],
])("GET /%s is 400 and names the field", async (path, field, code) => {
  const answer = await service.call("GET", `/${path}`);
  expect(answer).toMatchObject({ status: 400, body: { errors: [{ field, code }] } });
});
