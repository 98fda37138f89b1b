import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  oidcClientId,
  oidcClientSecret,
  startOidcProvider,
  type TestProvider,
} from "../../../../../test/support/oidc-provider.ts";
import { freePort } from "../../../../../test/support/ports.ts";
import { readConfig } from "../../config/config.ts";
import { OidcSignIn } from "../../operators/oidc.ts";
import { HttpTestService, operatorToken } from "../service.fixture.ts";

let provider: TestProvider;
let service: HttpTestService;
let consoleUrl: string;
beforeEach(async () => {
  const port = await freePort();
  consoleUrl = `http://127.0.0.1:${port}`;
  provider = await startOidcProvider(`${consoleUrl}/console/sign-in/callback`);
  service = await new HttpTestService({ env: environment() }).listen(port);
});
afterEach(async () => {
  vi.useRealTimers();
  await service.close();
  await provider.close();
});

const environment = () => ({
  PAYBELL_OIDC_ISSUER: provider.issuer,
  PAYBELL_OIDC_CLIENT_ID: oidcClientId,
  PAYBELL_OIDC_CLIENT_SECRET: oidcClientSecret,
  PAYBELL_CONSOLE_URL: consoleUrl,
  PAYBELL_CONSOLE_SIGN_IN: "oidc",
  // Neither the first nor the last is the highest.
  PAYBELL_OIDC_ROLES: "support=viewer,admin=admin,cn=desk=operator",
});

/** Keeps cookies and follows redirects, up to one that `stop` names. */
class Browser {
  readonly cookies = new Map<string, string>();
  readonly seen: string[] = [];

  async go(start: string, stop = (_: URL) => false): Promise<{ readonly url: URL; readonly status: number }> {
    let url = new URL(start, consoleUrl);
    for (let hops = 0; hops < 12; hops += 1) {
      if (stop(url)) return { url, status: 0 };
      const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
      const response = await fetch(url, { redirect: "manual", headers: { cookie } });
      await response.arrayBuffer();
      for (const line of response.headers.getSetCookie()) this.#keep(line);
      const location = response.headers.get("location");
      if (location === null) return { url, status: response.status };
      url = new URL(location, url);
    }
    throw new Error("too many redirects");
  }

  #keep(line: string): void {
    this.seen.push(line);
    const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    if (value === "" || /Max-Age=0/i.test(line)) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }

  get session(): Record<string, string> {
    return { cookie: `paybell_all=${this.cookies.get("paybell_all") ?? ""}` };
  }
}

/** A browser that was led to the provider and back. */
async function signedIn(): Promise<Browser> {
  const browser = new Browser();
  await browser.go("/console/sign-in");
  return browser;
}

const isCallback = (url: URL) => url.pathname === "/console/sign-in/callback";
const whoIs = (browser: Browser) => service.call("GET", "/console/session", { key: null, headers: browser.session });
const audited = async (action: string) => service.audit.search({ action, limit: 10 });

describe("a sign-in by OpenID", () => {
  test("begins a session with the name and the role of the claims, and the audit has both", async () => {
    const browser = new Browser();
    const { url } = await browser.go("/console/sign-in?page=/console/audit?actor=Ada");
    expect(url.href).toBe(`${consoleUrl}/console/audit?actor=Ada`);
    const { status, body } = await whoIs(browser);
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { kind: "operator", name: "Ada (OIDC)", role: "admin" },
    });
    const [entry] = await audited("signIn");
    expect(entry).toMatchObject({
      actor: "Ada (OIDC)",
      role: "admin",
      address: "127.0.0.1",
      subject: `${provider.issuer} ada`,
    });
    const path = `/operator/v1/partners/${service.partner.id}/pause`;
    const headers = { ...browser.session, "paybell-csrf": String(body["csrf"]) };
    expect((await service.call("POST", path, { key: null, headers })).status).toBe(200);
    expect(await audited("pausePartner")).toMatchObject([{ actor: "Ada (OIDC)", tokenId: entry?.tokenId }]);
  });

  test("sends each browser away with a state, a nonce and a challenge of its own", async () => {
    const atProvider = async () =>
      (await new Browser().go("/console/sign-in", (to) => to.origin === provider.issuer)).url;
    const [one, two] = [await atProvider(), await atProvider()];
    for (const name of ["state", "nonce", "code_challenge"]) {
      expect(one.searchParams.get(name)?.length, name).toBeGreaterThanOrEqual(43);
      expect(one.searchParams.get(name), name).not.toBe(two.searchParams.get(name));
    }
    expect(one.searchParams.get("code_challenge_method")).toBe("S256");
  });

  test("keeps the session's cookie Strict, and the attempt's Lax, short and away from everything else", async () => {
    const browser = await signedIn();
    const [attempt = "", session = ""] = ["paybell_all_sign_in=", "paybell_all="].map((name) =>
      browser.seen.find((line) => line.startsWith(name) && !/Max-Age=0/.test(line)),
    );
    expect(session).toMatch(/HttpOnly.*SameSite=Strict|SameSite=Strict.*HttpOnly/);
    for (const part of ["HttpOnly", "SameSite=Lax", "Path=/console/sign-in", "Max-Age=600"]) {
      expect(attempt).toContain(part);
    }
    expect(browser.cookies.has("paybell_all_sign_in")).toBe(false);
  });

  test("takes the highest role that the claim gives, from a text or a list", async () => {
    for (const [roles, role] of [
      [["support", "cn=desk"], "operator"],
      [["support"], "viewer"],
      [["support", "admin", "cn=desk"], "admin"],
      ["admin", "admin"],
    ] as const) {
      provider.person = { sub: "ada", name: "Ada", roles: roles as readonly string[] };
      const browser = await signedIn();
      expect((await whoIs(browser)).body).toMatchObject({ role });
    }
  });

  test("believes the signed ID token more than the userinfo endpoint", async () => {
    provider.wrong = { roles: ["support"] };
    const browser = await signedIn();
    expect((await whoIs(browser)).body).toMatchObject({ name: "Ada (OIDC)", role: "viewer" });
  });

  test("takes the role from a member of a claim, where the setting names one", async () => {
    await service.close();
    const env = { ...environment(), PAYBELL_OIDC_ROLE_CLAIM: "realm_access.roles" };
    service = await new HttpTestService({ env }).listen(Number(new URL(consoleUrl).port));
    provider.wrong = { realm_access: { roles: ["none", "admin"] } };
    const browser = await signedIn();
    expect((await whoIs(browser)).body).toMatchObject({ role: "admin" });
  });

  test("ends at the sign-out for a copy of its cookie, too", async () => {
    const browser = await signedIn();
    const { body } = await whoIs(browser);
    const headers = { ...browser.session, "paybell-csrf": String(body["csrf"]) };
    expect((await service.call("DELETE", "/console/session", { key: null, headers })).status).toBe(204);
    expect((await whoIs(browser)).status).toBe(401);
    const { body: list } = await service.call("GET", "/operator/v1/operators");
    expect(list["items"]).toMatchObject([{ name: "Ada (OIDC)", revokedAt: expect.any(String) }]);
    expect(await audited("signOut")).toMatchObject([{ actor: "Ada (OIDC)", subject: `${provider.issuer} ada` }]);
  });

  test.each(["bootstrap", "Grace", "partner 01a201e6-1bf7-73ed-8aa6-cf91ed000000"])(
    "names nobody else: the provider says %s",
    async (name) => {
      provider.person = { sub: "ada", name, roles: ["admin"] };
      const browser = await signedIn();
      expect((await whoIs(browser)).body).toMatchObject({ name: `${name} (OIDC)` });
      expect(await audited("signIn")).toMatchObject([{ actor: `${name} (OIDC)`, subject: `${provider.issuer} ada` }]);
    },
  );

  test("ends after twelve hours, and when an admin revokes it", async () => {
    const browser = await signedIn();
    const { body } = await service.call("GET", "/operator/v1/operators");
    const [operator] = body["items"] as { id: string; subject: string; createdAt: string; expiresAt: string }[];
    expect(operator?.subject).toBe(`${provider.issuer} ada`);
    const lifeMs = Date.parse(operator?.expiresAt ?? "") - Date.parse(operator?.createdAt ?? "");
    expect(Math.round(lifeMs / 3_600_000)).toBe(12);
    expect((await service.call("POST", `/operator/v1/operators/${operator?.id}/revoke`)).status).toBe(200);
    expect((await whoIs(browser)).status).toBe(401);
  });

  test("leads only to a page of the console", async () => {
    for (const page of [
      "https://evil.example/",
      "//evil.example/console",
      "/consoleevil",
      "/operator",
      "/\\evil",
      "console",
    ]) {
      const { url } = await new Browser().go(`/console/sign-in?page=${encodeURIComponent(page)}`);
      expect(url.href, page).toBe(`${consoleUrl}/console`);
    }
  });
});

describe("where two admins are needed", () => {
  let path: string;
  const rotation = { key: "signingKey", overlapHours: 0 };
  beforeEach(async () => {
    await service.close();
    const env = { ...environment(), PAYBELL_KEY_PROPOSAL_MINUTES: "60" };
    service = await new HttpTestService({ env }).listen(Number(new URL(consoleUrl).port));
    path = `/operator/v1/partners/${service.partner.id}/keys/rotate`;
  });

  async function byOidc(sub: string, name: string) {
    provider.person = { sub, name, roles: ["admin"] };
    const browser = await signedIn();
    const { body } = await whoIs(browser);
    const headers = { ...browser.session, "paybell-csrf": String(body["csrf"]) };
    return (to: string, json: object) => service.call("POST", to, { key: null, headers, json });
  }

  async function byToken(name: string) {
    const { body } = await service.call("POST", "/operator/v1/operators", { json: { name, role: "admin" } });
    const key = String(body["token"]);
    return (to: string, json: object) => service.call("POST", to, { key, json });
  }

  type Caller = Awaited<ReturnType<typeof byOidc>>;
  async function together(proposer: Caller, confirmer: Caller): Promise<number> {
    const { body, status } = await proposer(`${path}/propose`, rotation);
    expect(status).toBe(201);
    return (await confirmer(path, { ...rotation, proposal: body["id"] })).status;
  }

  test("two identities of the provider are two people, whatever they are called", async () => {
    expect(await together(await byOidc("ada", "Ada"), await byOidc("grace", "Grace"))).toBe(200);
    expect(await together(await byOidc("smith-1", "J. Smith"), await byOidc("smith-2", "J. Smith"))).toBe(200);
  });

  test("one identity is one person, in another session and under another name, too", async () => {
    expect(await together(await byOidc("ada", "Ada"), await byOidc("ada", "Ada"))).toBe(403);
    expect(await together(await byOidc("ada", "Ada"), await byOidc("ada", "Grace"))).toBe(403);
  });

  test.each(["Ada", "Grace"])("a token of %s and an identity of the provider may be one person", async (name) => {
    const token = await byToken(name);
    const oidc = await byOidc("ada", "Ada");
    expect([await together(token, oidc), await together(oidc, token)]).toEqual([403, 403]);
  });
});

describe("a sign-in by OpenID is refused, and audited", () => {
  async function refused(act: () => Promise<{ readonly url: URL }>, reason: string, browser: Browser) {
    const { url } = await act();
    expect(url.href).toBe(`${consoleUrl}/console?sign-in=${reason}`);
    expect(browser.cookies.has("paybell_all")).toBe(false);
    const [entry] = await audited("refuseSignIn");
    expect(entry?.after).toContain(`"reason":"${reason}"`);
    expect(await audited("signIn")).toEqual([]);
    return entry;
  }

  test.each<readonly [how: string, wrong: Partial<TestProvider>, reason: string]>([
    ["with a nonce of another attempt", { wrong: { nonce: "another" } }, "not_verified"],
    ["with another audience", { wrong: { aud: "another-client" } }, "not_verified"],
    ["with another issuer", { wrong: { iss: "https://evil.example" } }, "not_verified"],
    ["with a token that has expired", { wrong: { exp: Math.floor(Date.now() / 1_000) - 60 } }, "not_verified"],
    ["with a signature by a key that the provider does not have", { forged: true }, "not_verified"],
    ["with what the userinfo endpoint says of somebody else", { wrongUserInfo: { sub: "grace" } }, "not_verified"],
    ["if the person does not agree", { agrees: false }, "cancelled"],
    ...[undefined, "", "a\nb", "x".repeat(101), "\u202eada", "a\u2066b"].map((name) => {
      const person = { sub: "eve", roles: ["admin"], ...(name !== undefined && { name }) };
      return [`without a name that can be shown: ${JSON.stringify(name)}`, { person }, "no_name"] as const;
    }),
  ])("%s", async (_, wrong, reason) => {
    Object.assign(provider, wrong);
    const browser = new Browser();
    await refused(() => browser.go("/console/sign-in"), reason, browser);
  });

  test("with a state of another attempt", async () => {
    const browser = new Browser();
    const { url } = await browser.go("/console/sign-in", isCallback);
    url.searchParams.set("state", "another");
    await refused(() => browser.go(url.href), "not_verified", browser);
  });

  test("with a code that another browser asked for", async () => {
    const [victim, attacker] = [new Browser(), new Browser()];
    const { url } = await attacker.go("/console/sign-in", isCallback);
    await refused(() => victim.go(url.href), "not_begun", victim);
    await victim.go("/console/sign-in", (to) => to.origin === provider.issuer);
    await refused(() => victim.go(url.href), "not_verified", victim);
  });

  test("after ten minutes", async () => {
    const browser = new Browser();
    const { url } = await browser.go("/console/sign-in", isCallback);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 10 * 60_000 + 1_000 });
    await refused(() => browser.go(url.href), "not_begun", browser);
  });

  test("without a role that is known, with the person named", async () => {
    provider.person = { sub: "eve", name: "Eve", roles: ["owner"] };
    const browser = new Browser();
    const entry = await refused(() => browser.go("/console/sign-in"), "no_role", browser);
    expect(entry?.subject).toBe(`${provider.issuer} eve`);
  });

  test("with only the first refusals of a minute in the audit", async () => {
    for (let tried = 0; tried < 30; tried += 1) await new Browser().go("/console/sign-in/callback");
    const entries = await service.audit.search({ action: "refuseSignIn", limit: 100 });
    expect(entries.length).toBeLessThanOrEqual(10);
    expect(entries.length).toBeGreaterThan(0);
  });

  test("while the provider cannot be reached", async () => {
    await provider.close();
    const browser = new Browser();
    await refused(() => browser.go("/console/sign-in"), "unreachable", browser);
  });

  test("while it cannot be read, and no longer", async () => {
    let isAway = true;
    const oidc = OidcSignIn.of(readConfig(environment()), (...asked) =>
      isAway ? Promise.reject(new TypeError("fetch failed")) : fetch(...asked),
    );
    await expect(oidc?.begin()).rejects.toMatchObject({ reason: "unreachable" });
    isAway = false;
    expect((await oidc?.begin())?.url).toContain(provider.issuer);
  });

  test("with nothing of a code or a token in the log", async () => {
    provider.forged = true;
    const browser = new Browser();
    const { url } = await browser.go("/console/sign-in", isCallback);
    await browser.go(url.href);
    expect(service.logged).toContain("a sign-in by OpenID was refused");
    expect(service.logged).not.toContain(url.searchParams.get("code"));
    expect(service.logged).not.toMatch(/eyJ|secret-of-a-test/);
  });
});

test("without a provider there is no such way, and the page shows none", async () => {
  const without = await new HttpTestService().listen();
  const get = (path: string) => without.call("GET", path, { key: null });
  const [way, page] = [await get("/console/sign-in"), await get("/console")];
  await without.close();
  expect(way.headers.get("location")).toBeNull();
  expect(page.text).toContain('name="paybell-oidc" content="none"');
  expect((await service.call("GET", "/console", { key: operatorToken })).text).toContain('content="offered"');
});

test("partners' listener leads nobody to the provider", async () => {
  const env = { PAYBELL_OIDC_ISSUER: provider.issuer, PAYBELL_OIDC_CLIENT_ID: "c" };
  const more = { PAYBELL_OIDC_CLIENT_SECRET: "s", PAYBELL_CONSOLE_URL: consoleUrl };
  const partners = await new HttpTestService({ listener: "partners", env: { ...env, ...more } }).listen();
  const { headers } = await partners.call("GET", "/console/sign-in", { key: null });
  await partners.close();
  expect(headers.get("location")).toBeNull();
});
