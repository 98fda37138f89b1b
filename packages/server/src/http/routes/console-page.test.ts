import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HttpTestService } from "../service.fixture.ts";

let service: HttpTestService;
beforeEach(async () => {
  service = await new HttpTestService().listen();
});
afterEach(() => service.close());

const get = (path: string, headers: Record<string, string> = {}) => service.call("GET", path, { key: null, headers });

describe("/console", () => {
  test("/ leads to it", async () => {
    const { status, headers } = await get("/");
    expect([status, headers.get("location")]).toEqual([302, "/console"]);
  });

  test("is one page under every address below it, with a nonce of its own each time", async () => {
    const nonces = new Set<string>();
    for (const path of ["/console", "/console/notifications", "/console/partners/1?tab=keys"]) {
      const { status, text, headers } = await get(path);
      expect(status).toBe(200);
      const policy = headers.get("content-security-policy") ?? "";
      expect(policy).not.toContain("unsafe-inline");
      const [, nonce = ""] = /'nonce-([^']+)'/.exec(policy) ?? [];
      expect(text).toContain(`nonce="${nonce}"`);
      expect(text).not.toContain("%PAYBELL_NONCE%");
      nonces.add(nonce);
    }
    expect(nonces.size).toBe(3);
  });

  test("loads at most 300 kB, compressed, before it is there", async () => {
    const { text } = await get("/console");
    const assets = [...text.matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g)].map(([, path = ""]) => path);
    expect(assets.length).toBeGreaterThan(1);
    let bytes = text.length;
    for (const path of assets) {
      const { status, headers } = await get(path, { "accept-encoding": "br" });
      expect(status).toBe(200);
      expect(headers.get("cache-control")).toContain("immutable");
      bytes += Number(headers.get("content-length"));
    }
    expect(bytes).toBeLessThan(300_000);
  });

  test("offers no sign-in by token to operators who must sign in by OpenID", async () => {
    const way = async (env: NodeJS.ProcessEnv) => {
      const strict = await new HttpTestService({ listener: "operators", env }).listen();
      const { text } = await strict.call("GET", "/console", { key: null });
      await strict.close();
      return /name="paybell-oidc" content="([a-z]+)"/.exec(text)?.[1];
    };
    const oidc = {
      PAYBELL_OIDC_ISSUER: "https://login.example",
      PAYBELL_OIDC_CLIENT_ID: "paybell",
      PAYBELL_OIDC_CLIENT_SECRET: "a secret of the provider",
      PAYBELL_CONSOLE_URL: "https://ops.example",
    };
    expect(await way({})).toBe("none");
    expect(await way(oidc)).toBe("offered");
    expect(await way({ ...oidc, PAYBELL_CONSOLE_SIGN_IN: "oidc" })).toBe("only");
  });

  test("has no asset of another name", async () => {
    expect((await get("/console/assets/none.js")).status).toBe(404);
  });
});
