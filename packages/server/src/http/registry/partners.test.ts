import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HttpTestService } from "../service.fixture.ts";
import { rotatedSchema } from "./keys.ts";
import { newPartnerSchema, partnerPageSchema, partnerSchema, selfSchema } from "./partners.ts";
import { terminalSchema } from "./terminals.ts";

let service: HttpTestService;
beforeEach(async () => {
  service = await new HttpTestService().listen();
});
afterEach(() => service.close());

const input = { name: "Shop", callbackAddresses: ["203.0.113.0/24"], callingAddresses: ["198.51.100.0/24"] };
const partners = "/operator/v1/partners";

describe("partners", () => {
  test("one is registered: 201 with its id and its keys, and a Location", async () => {
    const { status, body, headers } = await service.call("POST", partners, { json: { ...input, cipher: "jwe" } });
    expect(status).toBe(201);
    expect(newPartnerSchema.safeParse(body).error).toBeUndefined();
    expect(Object.keys(body).sort()).toEqual(["apiKey", "encryptionKey", "id", "signingKey", "webhookSecret"]);
    const location = String(headers.get("location"));
    const shown = await service.call("GET", location);
    expect(partnerSchema.safeParse(shown.body).error).toBeUndefined();
    expect(shown.body).toMatchObject({ settings: { name: "Shop", cipher: "jwe", retry: expect.any(Array) } });
  });

  test("every setting that is wrong is named at once", async () => {
    const { status, body } = await service.call("POST", partners, {
      json: { callbackAddresses: ["x"], callingAddresses: [], cipher: "rot13", surprise: 1 },
    });
    expect(status).toBe(400);
    const errors = body["errors"] as { field: string }[];
    expect(errors.map(({ field }) => field).sort()).toEqual(["callbackAddresses[0]", "cipher", "name", "surprise"]);
  });

  test.each(["[]", '"x"', "null"])("the body %s is not a partner", async (body) => {
    const answer = await service.call("POST", partners, { body, headers: { "content-type": "application/json" } });
    expect(answer).toMatchObject({ status: 400, body: { code: "invalid_json" } });
  });

  test("they are listed by pages", async () => {
    const { status, body } = await service.call("GET", `${partners}?limit=2&after=${service.partner.id}`);
    expect(status).toBe(200);
    expect(partnerPageSchema.safeParse(body).error).toBeUndefined();
    expect(service.asked.at(-1)).toEqual(["list", { after: service.partner.id, limit: 2 }]);
    expect(await service.call("GET", `${partners}?after=x`)).toMatchObject({
      status: 400,
      body: { code: "invalid_cursor" },
    });
  });

  test("__proto__ is not a setting, nor a field of a terminal", async () => {
    const headers = { "content-type": "application/json" };
    const one = `${partners}/${service.partner.id}`;
    for (const [method, path] of [
      ["PATCH", one],
      ["POST", partners],
      ["PUT", `${one}/terminals/T1`],
    ] as const) {
      const answer = await service.call(method, path, { body: '{"mid":"M1","__proto__":{"name":"x"}}', headers });
      expect(answer.status).toBe(400);
      expect(answer.body["errors"]).toContainEqual(
        expect.objectContaining({ field: "__proto__", code: "unknown_field" }),
      );
    }
  });

  test("a setting is changed, a bad one refused", async () => {
    const path = `${partners}/${service.partner.id}`;
    const { status, body } = await service.call("PATCH", path, { json: { timeZone: "Asia/Ho_Chi_Minh" } });
    expect(status).toBe(200);
    expect(body).toMatchObject({ settings: { timeZone: "Asia/Ho_Chi_Minh", name: "A partner" } });
    const refused = await service.call("PATCH", path, { json: { timeZone: "Mars" } });
    expect(refused).toMatchObject({ status: 400, body: { errors: [{ field: "timeZone" }] } });
  });

  test.each([
    ["pause", "paused"],
    ["resume", "active"],
    ["disable", "disabled"],
  ])("%s makes it %s", async (action, state) => {
    const { status, body } = await service.call("POST", `${partners}/${service.partner.id}/${action}`);
    expect(status).toBe(200);
    expect(body["state"]).toBe(state);
  });

  test("a key is rotated, and shown only once", async () => {
    const path = `${partners}/${service.partner.id}/keys/rotate`;
    const { status, body } = await service.call("POST", path, { json: { key: "signingKey", overlapHours: 24 } });
    expect(status).toBe(200);
    expect(rotatedSchema.safeParse(body).error).toBeUndefined();
    expect(service.asked.at(-1)).toEqual(["rotate", "signingKey", 24]);
    const refused = await service.call("POST", path, { json: { key: "pin", overlapHours: -1 } });
    expect(refused.body["errors"]).toMatchObject([{ field: "key" }, { field: "overlapHours" }]);
    const missing = await service.call("POST", path, { json: {} });
    expect(missing.body).toMatchObject({ code: "missing_field", errors: [{ field: "key" }] });
    await service.call("POST", path, { json: { key: "apiKey" } });
    expect(service.asked.at(-1)).toEqual(["rotate", "apiKey", 24]);
  });

  test.each(["0195f000-0000-7000-8000-000000000000", "x"])(
    "the partner %s is not found, whatever is asked",
    async (id) => {
      const asked = [
        service.call("GET", `${partners}/${id}`),
        service.call("PATCH", `${partners}/${id}`, { json: {} }),
        service.call("POST", `${partners}/${id}/pause`),
        service.call("POST", `${partners}/${id}/keys/rotate`, { json: { key: "apiKey", overlapHours: 0 } }),
        service.call("PUT", `${partners}/${id}/terminals/T1`, { json: { mid: "M1" } }),
        service.call("GET", `${partners}/${id}/terminals`),
      ];
      for (const answer of await Promise.all(asked)) {
        expect(answer).toMatchObject({ status: 404, body: { code: "not_found" } });
      }
    },
  );
});

describe("terminals", () => {
  test("one is registered under its tid", async () => {
    const path = `${partners}/${service.partner.id}/terminals/T%2F1`;
    const { status, body } = await service.call("PUT", path, { json: { mid: "M1", merchantName: "Shop" } });
    expect(status).toBe(200);
    expect(terminalSchema.safeParse(body).error).toBeUndefined();
    expect(body).toMatchObject({ tid: "T/1", mid: "M1", merchantName: "Shop", deviceId: "" });
  });

  test("every field of a wrong shape is named", async () => {
    const { body } = await service.call("PUT", `${partners}/${service.partner.id}/terminals/T1`, {
      json: { merchantName: 1, appName: "x".repeat(65), tid: "T1", merchantAddress: "a\u0000" },
    });
    const errors = body["errors"] as { field: string; code: string }[];
    expect(Object.fromEntries(errors.map(({ field, code }) => [field, code]))).toEqual({
      mid: "missing_field",
      merchantName: "wrong_type",
      appName: "too_long",
      tid: "unknown_field",
      merchantAddress: "invalid_text",
    });
  });

  test("they are listed", async () => {
    const { status, body } = await service.call("GET", `${partners}/${service.partner.id}/terminals?after=T0`);
    expect(status).toBe(200);
    expect(body["items"]).toHaveLength(1);
    expect(service.asked.at(-1)).toEqual(["terminals", { after: "T0", limit: 100 }]);
  });
});

test("GET /v1/self shows the partner its settings, its key versions and our addresses, and no key", async () => {
  const { status, body } = await service.call("GET", "/v1/self");
  expect(status).toBe(200);
  expect(selfSchema.safeParse(body).error).toBeUndefined();
  expect(body).toMatchObject({ id: service.partner.id, egressAddresses: ["203.0.113.7"] });
});
