import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { apiKey, HttpTestService, operatorToken } from "./service.fixture.ts";

let service: HttpTestService;
beforeEach(async () => {
  service = await new HttpTestService().listen();
});
afterEach(async () => {
  vi.useRealTimers();
  await service.close();
});

async function signIn(token: string) {
  const { status, headers, body } = await service.call("POST", "/console/session", { key: null, json: { token } });
  const cookie = headers.get("set-cookie") ?? "";
  return { status, body, cookie, pair: cookie.split(";")[0] ?? "", csrf: String(body["csrf"]) };
}

describe("a session", () => {
  test("stands for an operator's token, in a cookie that no script reads and no other site sends", async () => {
    const { status, body, cookie, pair } = await signIn(operatorToken);
    expect(status).toBe(200);
    expect(body).toMatchObject({ kind: "operator", name: "bootstrap", role: "admin", sandbox: false });
    expect(cookie).toMatch(/; HttpOnly/);
    expect(cookie).toMatch(/; SameSite=Strict/);
    expect(cookie).not.toContain(operatorToken);
    const { status: read } = await service.call("GET", "/operator/v1/partners", {
      key: null,
      headers: { cookie: pair },
    });
    expect(read).toBe(200);
  });

  test("is sent over HTTPS alone, but on this machine", async () => {
    expect((await signIn(operatorToken)).cookie).not.toContain("Secure");
    const asked = request({
      ...{ host: "127.0.0.1", port: service.port, path: "/console/session", method: "POST" },
      headers: { host: "paybell.example", "content-type": "application/json" },
    });
    asked.end(JSON.stringify({ token: operatorToken }));
    const [elsewhere] = (await once(asked, "response")) as [IncomingMessage];
    elsewhere.resume();
    expect(elsewhere.headers["set-cookie"]?.join()).toContain("; Secure");
  });

  test("of a partner opens its own API, and not the operators'", async () => {
    const { body, pair } = await signIn(apiKey);
    expect(body).toMatchObject({ kind: "partner", name: "A partner", partnerId: service.partner.id });
    const headers = { cookie: pair };
    expect((await service.call("GET", "/v1/self", { key: null, headers })).status).toBe(200);
    expect((await service.call("GET", "/operator/v1/partners", { key: null, headers })).status).toBe(401);
  });

  test("changes nothing without the page's CSRF token", async () => {
    const { pair, csrf } = await signIn(operatorToken);
    const path = `/operator/v1/partners/${service.partner.id}/pause`;
    const pause = (headers: Record<string, string>) => service.call("POST", path, { key: null, headers });
    expect((await pause({ cookie: pair })).body).toMatchObject({ status: 403, code: "csrf" });
    expect((await pause({ cookie: pair, "paybell-csrf": `${csrf}x` })).body).toMatchObject({ code: "csrf" });
    expect((await pause({ cookie: pair, "paybell-csrf": csrf })).status).toBe(200);
  });

  test("ends with its time, and with a changed cookie", async () => {
    const { pair } = await signIn(operatorToken);
    const see = (cookie: string) => service.call("GET", "/console/session", { key: null, headers: { cookie } });
    expect((await see(pair)).status).toBe(200);
    expect((await see(`${pair.slice(0, -3)}AAA`)).status).toBe(401);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 2 * 3_600_000 + 1_000 });
    expect((await see(pair)).status).toBe(401);
  });

  test("goes on while it is used, for half a day at most", async () => {
    let { pair } = await signIn(operatorToken);
    const beganMs = Date.now();
    vi.useFakeTimers({ toFake: ["Date"] });
    for (let hours = 1; hours <= 12; hours += 1) {
      vi.setSystemTime(beganMs + hours * 3_600_000 - 1_000);
      const { status, headers } = await service.call("GET", "/console/session", {
        key: null,
        headers: { cookie: pair },
      });
      expect(status).toBe(200);
      pair = headers.get("set-cookie")?.split(";")[0] ?? "";
    }
    vi.setSystemTime(beganMs + 12 * 3_600_000 + 1_000);
    expect((await service.call("GET", "/console/session", { key: null, headers: { cookie: pair } })).status).toBe(401);
  });

  test("is not given for a wrong token, nor for none", async () => {
    expect((await signIn("pbo_wrong")).body).toMatchObject({ status: 401, code: "unauthorized" });
    const none = await service.call("POST", "/console/session", { key: null });
    expect(none.status).toBe(401);
    expect(service.logged).not.toContain("pbo_wrong");
  });

  test("is forgotten by the browser at the sign-out", async () => {
    const { pair, csrf } = await signIn(operatorToken);
    const headers = { cookie: pair, "paybell-csrf": csrf };
    const { status, headers: answered } = await service.call("DELETE", "/console/session", { key: null, headers });
    expect(status).toBe(204);
    expect(answered.get("set-cookie")).toContain("Max-Age=0");
  });
});

test("the sandbox signs in whoever is on this machine", async () => {
  const sandbox = await new HttpTestService({ sandbox: true }).listen();
  const { status, body } = await sandbox.call("POST", "/console/session", { key: null });
  await sandbox.close();
  expect({ status, body }).toMatchObject({ status: 200, body: { kind: "operator", sandbox: true } });
});

describe.each([
  ["partners", operatorToken, apiKey],
  ["operators", apiKey, operatorToken],
] as const)("the %s' listener", (listener, stranger, own) => {
  test("signs in its own callers alone", async () => {
    const one = await new HttpTestService({ listener }).listen();
    const ask = (token: string) => one.call("POST", "/console/session", { key: null, json: { token } });
    const [refused, taken] = [await ask(stranger), await ask(own)];
    await one.close();
    expect([refused.status, taken.status]).toEqual([401, 200]);
  });
});
