import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HttpTestService, otherApiKey } from "../service.fixture.ts";
import { endpointPageSchema, endpointSchema } from "./endpoints.ts";

let service: HttpTestService;
beforeEach(async () => {
  service = await new HttpTestService().listen();
});
afterEach(() => service.close());

describe("the partner's endpoints", () => {
  test("are its own, and listed by their state", async () => {
    const { status, body } = await service.call("GET", "/v1/endpoints?state=open");
    expect(status).toBe(200);
    expect(endpointPageSchema.safeParse(body).error).toBeUndefined();
    expect(service.asked.at(-1)).toEqual(["endpoints", { partnerId: service.partner.id, state: "open", limit: 100 }]);
  });

  test("do not say which names the operator can resolve; the operator's list does", async () => {
    expect((await service.call("GET", "/v1/endpoints")).body).toMatchObject({
      items: [{ lastReason: "address_refused" }],
    });
    expect((await service.call("GET", "/operator/v1/endpoints")).body).toMatchObject({
      items: [{ lastReason: "dns" }],
    });
    const reason = "address_refused";
    const backlog = await service.call("GET", "/v1/backlog");
    expect(backlog.body).toMatchObject({ trouble: { reason }, parkedBecause: { reason } });
    expect((await service.call("GET", "/v1/figures")).body).toMatchObject({ failures: [{ reason }] });
    const { id } = service.partner;
    const seen = await service.call("GET", `/operator/v1/partners/${id}/figures`);
    expect(seen.body).toMatchObject({ failures: [{ reason: "dns" }] });
    const others = await service.call("GET", "/v1/figures", { key: otherApiKey });
    expect(others.body).toMatchObject({ failures: [] });
  });

  test("one is closed, and another partner's is the 404 of an unknown one", async () => {
    const path = `/v1/endpoints/${service.endpointId}/close`;
    const { status, body } = await service.call("POST", path);
    expect(status).toBe(200);
    expect(endpointSchema.safeParse(body).error).toBeUndefined();
    expect(body["state"]).toBe("closed");
    for (const [where, key] of [
      [path, otherApiKey],
      ["/v1/endpoints/0195f000-0000-7000-8000-000000000000/close", undefined],
      ["/v1/endpoints/x/close", undefined],
    ] as const) {
      const answer = await service.call("POST", where, key === undefined ? {} : { key });
      expect(answer).toMatchObject({ status: 404, body: { code: "not_found", detail: "There is no such endpoint." } });
    }
  });
});

describe("the operator's endpoints", () => {
  test("are listed by partner and state", async () => {
    const { id } = service.partner;
    const after = service.endpointId;
    const query = `partner=${id}&state=gone&after=${after}&limit=5`;
    const { status, body } = await service.call("GET", `/operator/v1/endpoints?${query}`);
    expect(status).toBe(200);
    expect(endpointPageSchema.safeParse(body).error).toBeUndefined();
    expect(service.asked.at(-1)).toEqual(["endpoints", { partnerId: id, state: "gone", after, limit: 5 }]);
    expect(await service.call("GET", "/operator/v1/endpoints?partner=x")).toMatchObject({
      status: 400,
      body: { code: "unknown_partner" },
    });
  });

  test("any one is closed, or only if it is a given partner's", async () => {
    const path = `/operator/v1/endpoints/${service.endpointId}/close`;
    expect((await service.call("POST", path)).status).toBe(200);
    expect(service.asked.at(-1)).toEqual(["close", service.endpointId, undefined]);
    expect((await service.call("POST", path, { json: { partnerId: service.partner.id } })).status).toBe(200);
    expect(await service.call("POST", path, { json: { partnerId: service.other.id } })).toMatchObject({ status: 404 });
    expect(await service.call("POST", path, { json: { partnerId: "x" } })).toMatchObject({
      status: 400,
      body: { code: "unknown_partner", errors: [{ field: "partnerId" }] },
    });
    expect(await service.call("POST", path, { json: { partner: "x" } })).toMatchObject({
      status: 400,
      body: { errors: [{ field: "partner", code: "unknown_field" }] },
    });
  });
});
