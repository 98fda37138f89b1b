import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { newId } from "../../ids.ts";
import { apiKey, HttpTestService } from "../service.fixture.ts";

let service: HttpTestService;
beforeEach(async () => {
  service = await new HttpTestService({ env: { PAYBELL_PARTNERS_URL: "https://paybell.example" } }).listen();
});
afterEach(async () => {
  vi.useRealTimers();
  await service.close();
});

const linksOf = (partnerId: string) => `/operator/v1/partners/${partnerId}/view-links`;

async function make(json: object = {}) {
  const { status, body } = await service.call("POST", linksOf(service.partner.id), { json });
  expect(status).toBe(201);
  const [address = "", token = ""] = String(body["url"]).split("#view=");
  return { id: String(body["id"]), expiresAt: String(body["expiresAt"]), address, token };
}

async function open(token: string) {
  const { status, headers, body } = await service.call("POST", "/console/session", { key: null, json: { token } });
  const pair = (headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const page = { cookie: pair, "paybell-csrf": String(body["csrf"]) };
  return {
    status,
    body,
    call: (method: string, path: string, json?: object) =>
      service.call(method, path, { key: null, headers: page, ...(json && { json }) }),
  };
}

describe("a view link", () => {
  test("opens its partner's pages for reading, from any address, and nothing else", async () => {
    service.callingAddresses = ["203.0.113.0/24"];
    const { address, token, expiresAt } = await make({ minutes: 15 });
    expect(address).toBe("https://paybell.example/console/");
    const { status, body, call } = await open(token);
    expect(status).toBe(200);
    const view = { by: "bootstrap", until: expiresAt };
    expect(body).toMatchObject({ kind: "partner", partnerId: service.partner.id, scopes: ["read"], view });
    expect((await call("GET", "/v1/self")).body).toMatchObject({ id: service.partner.id });
    expect((await call("GET", "/v1/notifications/search")).status).toBe(200);
    const refused = { status: 403, body: { code: "scope_not_allowed" } };
    expect(await call("GET", "/v1/notifications")).toMatchObject(refused);
    expect(await call("GET", `/v1/notifications/${newId()}/sealed`)).toMatchObject(refused);
    expect(await call("POST", "/v1/test-notification")).toMatchObject(refused);
    expect(await call("POST", "/v1/api-keys", { name: "x", scopes: ["read"] })).toMatchObject(refused);
    expect((await call("GET", "/operator/v1/partners")).status).toBe(401);
    expect(service.used).toEqual([]);
  });

  test("is no API key: only the console takes it", async () => {
    const { token } = await make();
    expect((await service.call("GET", "/v1/self", { key: token })).status).toBe(401);
  });

  test("ends with its time, also for what it opened, and its page's further calls count as no wrong keys", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { token } = await make();
    const { call } = await open(token);
    vi.setSystemTime(Date.now() + 60 * 60_000 - 1_000);
    expect((await call("GET", "/v1/self")).status).toBe(200);
    vi.setSystemTime(Date.now() + 1_000);
    for (let nth = 0; nth < 120; nth += 1) expect((await call("GET", "/v1/self")).status).toBe(401);
    expect((await service.call("GET", "/v1/self", { key: apiKey })).status).toBe(200);
    expect((await open(token)).body["detail"]).toContain("has expired, or was revoked");
  });

  test("is revoked by its id, also for what it opened, and no other one with it", async () => {
    const [link, other] = [await make(), await make()];
    const [opened, beside] = [await open(link.token), await open(other.token)];
    const path = `${linksOf(service.partner.id)}/${link.id}/revoke`;
    expect(await service.call("POST", path)).toMatchObject({ status: 200, body: { id: link.id } });
    expect((await opened.call("GET", "/v1/self")).status).toBe(401);
    expect((await open(link.token)).status).toBe(401);
    expect((await beside.call("GET", "/v1/self")).status).toBe(200);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 59 * 60_000 });
    expect([(await open(link.token)).status, (await open(other.token)).status]).toEqual([401, 200]);
  });

  test("that somebody changed opens nothing", async () => {
    const { token } = await make();
    const other = token.at(-2) === "A" ? "B" : "A";
    for (const changed of [token.slice(0, -2) + other + token.slice(-1), "pbv_", "pbv_x", `${token}=`.slice(1)]) {
      expect((await open(changed)).status, changed).toBe(401);
    }
  });

  test("is made by operators, not viewers, for a partner that exists, and for an hour at most", async () => {
    const { body } = await service.call("POST", "/operator/v1/operators", { json: { name: "Vera", role: "viewer" } });
    const key = String(body["token"]);
    expect((await service.call("POST", linksOf(service.partner.id), { key, json: {} })).status).toBe(403);
    expect((await service.call("POST", linksOf(newId()), { json: {} })).status).toBe(404);
    const long = await service.call("POST", linksOf(service.partner.id), { json: { minutes: 61 } });
    expect(long).toMatchObject({ status: 400, body: { errors: [{ field: "minutes" }] } });
  });

  test("opens nothing of a partner that is disabled", async () => {
    const { token } = await make();
    service.state = "disabled";
    expect((await open(token)).body).toMatchObject({ status: 403, code: "partner_disabled" });
  });

  test("is in the audit: who made it, each time it was opened, and who revoked it, but not its token", async () => {
    const { id, token } = await make();
    await open(token);
    await service.call("POST", `${linksOf(service.partner.id)}/${id}/revoke`);
    const subject = `${service.partner.id}/${id}`;
    expect(service.audit.records).toMatchObject([
      { action: "begin makeViewLink", subject: service.partner.id, role: "admin", tokenId: "bootstrap" },
      { action: "makeViewLink", subject, role: "admin", tokenId: "bootstrap" },
      { action: "signIn", subject: "", role: "view link", tokenId: id },
      { action: "begin revokeViewLink", subject, role: "admin", tokenId: "bootstrap" },
      { action: "revokeViewLink", subject, role: "admin", tokenId: "bootstrap" },
    ]);
    expect(JSON.stringify(service.audit.records)).not.toContain(token.slice(4));
    expect(service.logged).not.toContain(token.slice(4));
  });
});
