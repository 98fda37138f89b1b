import { createSecretKey, randomBytes } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { FastifyRequest } from "fastify";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { apiKey, HttpTestService, operatorToken } from "../service.fixture.ts";
import { SealedCookie } from "./sessions.ts";

let service: HttpTestService;
beforeEach(async () => {
  service = await new HttpTestService().listen();
});
afterEach(async () => {
  vi.useRealTimers();
  await service.close();
});

const oidcOnly = {
  PAYBELL_CONSOLE_SIGN_IN: "oidc",
  PAYBELL_OIDC_ISSUER: "https://login.example",
  PAYBELL_OIDC_CLIENT_ID: "paybell",
  PAYBELL_OIDC_CLIENT_SECRET: "a secret of the provider",
  PAYBELL_CONSOLE_URL: "https://ops.example",
};

async function signIn(token: string) {
  const { status, headers, body } = await service.call("POST", "/console/session", { key: null, json: { token } });
  const cookie = headers.get("set-cookie") ?? "";
  return { status, body, cookie, pair: cookie.split(";")[0] ?? "", csrf: String(body["csrf"]) };
}

const see = (cookie: string) => service.call("GET", "/console/session", { key: null, headers: { cookie } });
const signOut = (headers: Record<string, string>) => service.call("DELETE", "/console/session", { key: null, headers });
const headersOf = ({ pair, csrf }: Awaited<ReturnType<typeof signIn>>) => ({ cookie: pair, "paybell-csrf": csrf });

describe("a session", () => {
  test("replaces an operator's token, in a cookie that no script reads and no other site sends", async () => {
    const { status, body, cookie, pair } = await signIn(operatorToken);
    expect(status).toBe(200);
    expect(body).toMatchObject({ kind: "operator", name: "bootstrap", role: "admin", sandbox: false });
    expect(cookie).toMatch(/; HttpOnly/);
    expect(cookie).toMatch(/; SameSite=Strict/);
    expect(cookie).not.toContain(operatorToken);
    const headers = { cookie: pair };
    expect((await service.call("GET", "/operator/v1/partners", { key: null, headers })).status).toBe(200);
  });

  test("is sent over HTTPS only, except on this machine", async () => {
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
    expect(body).toMatchObject({ kind: "partner", name: "A partner", partnerId: service.partner.id, scopes: null });
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
    expect((await signOut({ cookie: pair })).body).toMatchObject({ code: "csrf" });
  });

  test("ends with its time, and with a changed cookie", async () => {
    const { pair } = await signIn(operatorToken);
    expect((await see(pair)).status).toBe(200);
    const other = pair.at(-3) === "A" ? "B" : "A";
    expect((await see(`${pair.slice(0, -3)}${other}${pair.slice(-2)}`)).status).toBe(401);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 2 * 3_600_000 + 1_000 });
    expect((await see(pair)).status).toBe(401);
  });

  test("continues while it is used, for half a day at most", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const beganMs = Date.now();
    let { pair } = await signIn(operatorToken);
    for (let hours = 1; hours <= 12; hours += 1) {
      vi.setSystemTime(beganMs + hours * 3_600_000 - 1_000);
      const { status, headers } = await see(pair);
      expect(status).toBe(200);
      pair = headers.get("set-cookie")?.split(";")[0] ?? "";
    }
    vi.setSystemTime(beganMs + 12 * 3_600_000 + 1_000);
    expect((await see(pair)).status).toBe(401);
  });

  test("is not given for a wrong token, nor for none", async () => {
    expect((await signIn("pbo_wrong")).body).toMatchObject({ status: 401, code: "unauthorized" });
    const none = await service.call("POST", "/console/session", { key: null });
    expect(none.status).toBe(401);
    expect(service.logged).not.toContain("pbo_wrong");
  });

  test("is forgotten by the browser at the sign-out", async () => {
    const { status, headers } = await signOut(headersOf(await signIn(operatorToken)));
    expect(status).toBe(204);
    expect(headers.get("set-cookie")).toContain("Max-Age=0");
  });

  test("ends at the sign-out for a copy of its cookie, too, and no other session of its token does", async () => {
    const [own, other] = [await signIn(operatorToken), await signIn(operatorToken)];
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    const renewed = (await see(own.pair)).headers.get("set-cookie")?.split(";")[0] ?? "";
    await signOut(headersOf(own));
    expect([(await see(own.pair)).status, (await see(renewed)).status]).toEqual([401, 401]);
    expect((await see(other.pair)).status).toBe(200);
    // The copy that was renewed would last an hour longer.
    vi.setSystemTime(Date.now() + 1.5 * 3_600_000);
    expect((await see(renewed)).status).toBe(401);
  });
});

describe("the audit", () => {
  const entries = async () => {
    const { body } = await service.call("GET", "/operator/v1/audit");
    return body["items"] as Record<string, unknown>[];
  };
  const address = "127.0.0.1";

  test("has each sign-in and sign-out by token: who, as what, from where, and no token", async () => {
    const operator = await signIn(operatorToken);
    const partner = await signIn(apiKey);
    for (const one of [partner, operator]) await signOut(headersOf(one));
    const who = {
      operator: { actor: "bootstrap", role: "admin", tokenId: "bootstrap", address },
      partner: { actor: `partner ${service.partner.id}`, role: "partner", tokenId: service.keyId, address },
    };
    const found = await entries();
    expect(found).toMatchObject([
      { ...who.operator, action: "signOut" },
      { ...who.partner, action: "signOut" },
      { ...who.partner, action: "signIn", after: { by: "token" } },
      { ...who.operator, action: "signIn", after: { by: "token" } },
    ]);
    expect(JSON.stringify(found)).not.toMatch(new RegExp(`${operatorToken}|${apiKey}|${operator.csrf}`));
  });

  test("has a sign-out once, and none of nobody", async () => {
    const headers = headersOf(await signIn(operatorToken));
    for (const sent of [headers, headers, {}]) await signOut(sent);
    expect((await entries()).map(({ action }) => action)).toEqual(["signOut", "signIn"]);
  });

  test("has why a sign-in was refused, without what was tried", async () => {
    await signIn("pbo_wrong");
    service.callingAddresses = ["203.0.113.9/32"];
    await signIn(apiKey);
    const found = await entries();
    expect(found).toMatchObject([
      { action: "refuseSignIn", actor: "", tokenId: "", address, after: { reason: "address_not_allowed" } },
      { action: "refuseSignIn", actor: "", tokenId: "", address, after: { reason: "unauthorized" } },
    ]);
    expect(JSON.stringify(found)).not.toMatch(/pbo_wrong|pb_api-key/);
  });

  test("has only the first refusals of a minute, and says that there may be more", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    for (let tried = 0; tried < 30; tried += 1) await signIn(`pbo_wrong-${tried}`);
    const found = await entries();
    expect(found.length).toBeLessThanOrEqual(10);
    expect(found[0]).toMatchObject({ after: { further: "of this address are not recorded for 60 s" } });
    expect(found[1]).toMatchObject({ after: { reason: "unauthorized" } });
  });

  test.each([
    ["60 refusals of a minute, from however many addresses", "198.51.100.", 60],
    ["ten refusals of a minute from one network of IPv6 addresses", "2001:db8:1:2::", 10],
  ])("has %s", async (_, network, recorded) => {
    const env = { PAYBELL_TRUSTED_PROXIES: "127.0.0.1/32" };
    const proxied = await new HttpTestService({ env }).listen();
    for (let from = 1; from <= 70; from += 1) {
      const headers = { "x-forwarded-for": `${network}${from}` };
      await proxied.call("POST", "/console/session", { key: null, json: { token: "pbo_wrong" }, headers });
    }
    await proxied.close();
    expect(proxied.audit.records).toHaveLength(recorded);
    expect(proxied.audit.records.at(-1)).toMatchObject({
      address: `${network}${recorded}`,
      after: expect.stringContaining("are not recorded"),
    });
  });

  test("that cannot be written lets nobody sign in, and keeps nobody from signing out", async () => {
    const own = await signIn(operatorToken);
    service.audit.recordsMax = 0;
    expect((await signIn(operatorToken)).status).toBe(500);
    expect((await signIn("pbo_wrong")).status).toBe(401);
    expect((await signOut(headersOf(own))).status).toBe(204);
    expect((await see(own.pair)).status).toBe(401);
    expect(service.logged).toContain("could not be audited");
  });
});

test("one token signs in so often in a minute, and then waits", async () => {
  const answers: number[] = [];
  for (let tried = 0; tried < 61; tried += 1) answers.push((await signIn(operatorToken)).status);
  expect(answers.filter((status) => status === 200)).toHaveLength(60);
  expect(answers.at(-1)).toBe(429);
  expect((await signIn(apiKey)).status).toBe(200);
});

test("operators can be asked to sign in by OpenID, and their tokens still call the API", async () => {
  const strict = await new HttpTestService({ env: oidcOnly }).listen();
  const call = (token: string) => strict.call("POST", "/console/session", { key: null, json: { token } });
  const [byOperator, byPartner] = [await call(operatorToken), await call(apiKey)];
  const listed = await strict.call("GET", "/operator/v1/partners");
  await strict.close();
  expect(byOperator).toMatchObject({ status: 403, body: { code: "oidc_sign_in_required" } });
  expect(byOperator.headers.get("set-cookie")).toBeNull();
  expect([byPartner.status, listed.status]).toEqual([200, 200]);
});

test("the sandbox signs in any caller on this machine", async () => {
  const sandbox = await new HttpTestService({ sandbox: true }).listen();
  const { status, body } = await sandbox.call("POST", "/console/session", { key: null });
  await sandbox.close();
  expect({ status, body }).toMatchObject({ status: 200, body: { kind: "operator", sandbox: true } });
});

describe.each([
  ["partners", operatorToken, apiKey],
  ["operators", apiKey, operatorToken],
] as const)("the %s' listener", (listener, stranger, own) => {
  test("signs in only its own callers", async () => {
    const one = await new HttpTestService({ listener }).listen();
    const ask = (token: string) => one.call("POST", "/console/session", { key: null, json: { token } });
    const [refused, taken] = [await ask(stranger), await ask(own)];
    await one.close();
    expect([refused.status, taken.status]).toEqual([401, 200]);
  });
});

test("a wrong token is refused in words that fit where it was tried", async () => {
  const partners = await new HttpTestService({ listener: "partners" }).listen();
  onTestFinished(() => partners.close());
  const refusalOf = async (token: string) => {
    const { status, body } = await partners.call("POST", "/console/session", { key: null, json: { token } });
    expect(status).toBe(401);
    return String(body["detail"]);
  };
  expect(await refusalOf(`pb_${"x".repeat(43)}`)).toBe("Nobody has this token: it is mistyped, revoked or expired.");
  expect(await refusalOf(`pbo_${"x".repeat(43)}`)).toBe("Operators sign in at their own address, not here.");
  expect(await refusalOf("a token of the settings")).toContain("A partner's API key begins with pb_");
});

const key = createSecretKey(randomBytes(32));
const cookieNamed = (name: string, of = key) => new SealedCookie<object>(of, { name, path: "/", sameSite: "strict" });
const withCookie = (cookie: string) => ({ headers: { cookie }, hostname: "paybell.example" }) as FastifyRequest;
const sealed =
  cookieNamed("one").write(withCookie(""), { token: "secret" }, 60).split(";")[0]?.slice("one=".length) ?? "";

test("a sealed cookie is read under its own name, and shows nothing of its value", () => {
  expect(cookieNamed("one").read(withCookie(`one=${sealed}`))).toEqual({ token: "secret" });
  expect(Buffer.from(sealed, "base64url").toString("latin1")).not.toContain("secret");
});

test("a sealed cookie is not read under another name, by another key, or changed in any byte", () => {
  expect(cookieNamed("two").read(withCookie(`two=${sealed}`))).toBeUndefined();
  expect(cookieNamed("one", createSecretKey(randomBytes(32))).read(withCookie(`one=${sealed}`))).toBeUndefined();
  const bytes = Buffer.from(sealed, "base64url");
  for (const at of bytes.keys()) {
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
    expect(cookieNamed("one").read(withCookie(`one=${changed.toString("base64url")}`))).toBeUndefined();
  }
  for (const wrong of ["", "x", sealed.slice(0, 20), "%00"]) {
    expect(cookieNamed("one").read(withCookie(`one=${wrong}`))).toBeUndefined();
  }
});
