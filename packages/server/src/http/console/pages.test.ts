import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { caseCodes } from "@paybell/partner/certify";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { refusals } from "../../../../partner/src/errors/refused.ts";
import { alertKinds } from "../../alerts/kinds.ts";
import { errors } from "../../errors.ts";
import { createLog } from "../../telemetry/log.ts";
import { handleFailures } from "../problems.ts";
import { HttpTestService } from "../service.fixture.ts";
import { docsRoutes, staticFiles } from "./pages.ts";

let service: HttpTestService;
const closesService = () => afterEach(() => service.close());

const get = (path: string, headers: Record<string, string> = {}) => service.call("GET", path, { key: null, headers });

/** The addresses that a page's elements name. */
const named = (html: string) => [...html.matchAll(/\s(?:src|href)="([^"]+)"/g)].map(([, address = ""]) => address);

const isLocal = (address: string) => address.startsWith("/docs/");

/** Every page and file that can be reached from the first page by links. */
async function pages(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const next = ["/docs/"];
  for (let path = next.pop(); path !== undefined; path = next.pop()) {
    if (found.has(path)) continue;
    const { status, text } = await get(path);
    expect(status, path).toBe(200);
    found.set(path, text);
    next.push(
      ...named(text)
        .map((address) => address.replace(/#.*$/, ""))
        .filter(isLocal),
    );
  }
  return found;
}

test("the OpenAPI document is served before the guides are built", async () => {
  const unbuilt = await mkdtemp(join(tmpdir(), "paybell-guides-"));
  try {
    for (const [listener, isForOperators] of [
      ["partners", false],
      ["operators", true],
    ] as const) {
      const app = Fastify();
      docsRoutes(app, { docs: "on" }, listener, unbuilt);
      const guides = await app.inject("/docs/");
      expect([guides.statusCode, guides.headers["retry-after"]]).toEqual([503, "30"]);
      const answer = await app.inject("/openapi.json");
      expect(answer.headers["content-type"]).toMatch(/^application\/json/);
      const { paths } = answer.json<{ paths: object }>();
      expect("/operator/v1/overview" in paths).toBe(isForOperators);
      await app.close();
    }
  } finally {
    await rm(unbuilt, { recursive: true });
  }
});

test("the guides of partners have, also for a search, no section of a page that is for operators", async () => {
  const filesWith = async (readers: string, word: RegExp) => {
    const site = join(import.meta.dirname, "../../../../../docs/.vitepress/dist", readers);
    const names = (await readdir(site, { recursive: true })).filter((name) => /\.(?:html|js)$/.test(name));
    const texts = await Promise.all(names.map((name) => readFile(join(site, name), "utf8")));
    return names.filter((_, at) => word.test(texts[at] ?? ""));
  };
  const ofOperators = /for-the-operator|second_admin_required|paybell[- ]serve/;
  expect(await filesWith("operators", ofOperators)).toEqual(
    expect.arrayContaining(["reference/cli.html", expect.stringContaining("localSearchIndex")]),
  );
  expect(await filesWith("partners", ofOperators)).toEqual([]);
});

describe("the guides", () => {
  closesService();

  test("load everything from the service: no page names another origin for what it loads", async () => {
    service = await new HttpTestService().listen();
    const { headers } = await get("/docs/");
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toMatch(/^default-src 'none'; script-src 'self' ('sha256-[^']+' ?)+; /);
    expect(policy).not.toMatch(/https?:|\*|'unsafe-eval'/);
    for (const [path, html] of await pages()) {
      const loaded = [...html.matchAll(/<(?:script|link|img)\b[^>]*?\s(?:src|href)="([^"]+)"/g)];
      for (const [, address] of loaded) expect(address, path).toMatch(/^(?:\/docs\/|js\/scalar\.js$|data:)/);
      for (const [, code = ""] of html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>(.*?)<\/script>/gs)) {
        expect(policy, path).toContain(createHash("sha256").update(code).digest("base64"));
      }
    }
  });

  test("of operators have every page, and the API reference names both APIs", async () => {
    service = await new HttpTestService({ listener: "operators" }).listen();
    const paths = [...(await pages()).keys()];
    expect(paths).toEqual(expect.arrayContaining(["/docs/api", "/docs/partner/receive", "/docs/operator/runbook"]));
    const { paths: operations } = (await get("/openapi.json")).body as { paths: object };
    expect(Object.keys(operations)).toEqual(expect.arrayContaining(["/v1/commands", "/operator/v1/partners"]));
  });

  test("of partners have no page and no operation of operators", async () => {
    service = await new HttpTestService({ listener: "partners" }).listen();
    const found = await pages();
    expect([...found.keys()]).toEqual(expect.arrayContaining(["/docs/api", "/docs/partner/receive"]));
    for (const [path, html] of found) {
      expect(
        named(html).filter((address) => /\/(?:operator|internals|decisions)\//.test(address)),
        path,
      ).toEqual([]);
    }
    for (const path of ["operator/runbook", "reliability", "reference/settings", "reference/openapi.json"]) {
      expect(await get(`/docs/${path}`), path).toMatchObject({ status: 404, body: { code: "not_found" } });
    }
    expect((await get("/openapi.json")).text).not.toMatch(/"\/operator|"\/metrics|operatorToken/);
  });

  test("have an anchor for each error code, refusal, case of certify and kind of alert", async () => {
    service = await new HttpTestService({ listener: "operators" }).listen();
    const lists = {
      "/docs/reference/errors": Object.keys(errors),
      "/docs/partner/errors": Object.keys(refusals),
      "/docs/partner/certify": caseCodes,
      "/docs/operator/runbook": alertKinds,
    };
    for (const [path, codes] of Object.entries(lists)) {
      const { text } = await get(path);
      const missing = codes.filter((code) => !text.includes(` id="${code}"`));
      expect(missing, path).toEqual([]);
    }
  });

  test("are compressed, kept by browsers, and not sent again where they are known", async () => {
    service = await new HttpTestService().listen();
    const { headers, text } = await get("/docs/partner/receive", { "accept-encoding": "br" });
    expect(headers.get("content-encoding")).toBe("br");
    expect(headers.get("cache-control")).toBe("no-cache");
    const etag = headers.get("etag") ?? "none";
    expect(await get("/docs/partner/receive", { "if-none-match": etag })).toMatchObject({ status: 304, text: "" });
    expect((await get("/docs/partner/receive", { "if-none-match": 'W/"other"' })).status).toBe(200);
    const asset = named(text).find((address) => address.startsWith("/docs/assets/")) ?? "none";
    expect((await get(asset)).headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  });

  test.each(["/docs/nothing", "/docs/assets/nothing.js", "/docs/..%2fbuild.json", "/docs/%00", "/docs/build.json"])(
    "have no page at %s",
    async (path) => {
      service = await new HttpTestService().listen();
      expect((await get(path)).status).toBeGreaterThanOrEqual(400);
      expect((await get(path)).status).toBeLessThan(500);
    },
  );

  test.each(["/docs", "/docs/", "/docs/api", "/docs/js/scalar.js", "/openapi.json"])(
    "are not served with PAYBELL_DOCS=off: %s",
    async (path) => {
      service = await new HttpTestService({ env: { PAYBELL_DOCS: "off" } }).listen();
      expect(await get(path)).toMatchObject({ status: 404, body: { code: "not_found" } });
    },
  );
});

describe("/console", () => {
  closesService();
  beforeEach(async () => {
    service = await new HttpTestService().listen();
  });

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
      for (const closed of ["default-src", "base-uri", "frame-ancestors"]) {
        expect(policy).toContain(`${closed} 'none'`);
      }
      const [, nonce = ""] = /'nonce-([^']+)'/.exec(policy) ?? [];
      expect(text).toContain(`nonce="${nonce}"`);
      expect(text).not.toContain("%PAYBELL_NONCE%");
      nonces.add(nonce);
    }
    expect(nonces.size).toBe(3);
  });

  test("has assets that are compressed, and that browsers keep", async () => {
    const asset = named((await get("/console")).text).find((address) => address.startsWith("/console/assets/")) ?? "";
    const { status, headers } = await get(asset, { "accept-encoding": "br" });
    expect([status, headers.get("content-encoding")]).toEqual([200, "br"]);
    expect(headers.get("cache-control")).toContain("immutable");
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

describe("a folder of files", () => {
  const longName = `${"x".repeat(300)}.js`;
  let root: string;
  let app: FastifyInstance;
  let logged: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "paybell-static-"));
    await writeFile(join(root, "a.js"), "0123456789");
    logged = "";
    app = Fastify();
    const log = createLog("info", { write: (line) => (logged += line) });
    handleFailures(app, { log, address: () => undefined, isUnavailable: () => false });
    app.register((scope, _, done) => {
      staticFiles(scope, { root, prefix: "/files/" });
      done();
    });
  });
  afterEach(async () => {
    await app.close();
    await rm(root, { recursive: true });
  });

  async function getFile(name: string, headers: Record<string, string> = {}) {
    const { statusCode, headers: answered, body } = await app.inject({ url: `/files/${name}`, headers });
    return { status: statusCode, headers: answered, body };
  }

  test("a file is sent, whole or in part", async () => {
    expect(await getFile("a.js")).toMatchObject({ status: 200, body: "0123456789" });
    expect(await getFile("a.js", { range: "bytes=2-3" })).toMatchObject({ status: 206, body: "23" });
  });

  test.each(["none.js", "%00", "a%5Cb", ".hidden", "%2e%2e/a.js", "a.js/b", longName])(
    "a name that no file has is 404: %s",
    async (name) => {
      const { status, body, headers } = await getFile(name);
      expect({ status, ...JSON.parse(body) }).toMatchObject({ status: 404, code: "not_found" });
      expect(headers["content-type"]).toBe("application/problem+json");
      expect(logged).toBe("");
    },
  );

  test("a range beyond the end is 416, with the length of the file", async () => {
    const { status, body, headers } = await getFile("a.js", { range: "bytes=99999999-" });
    expect({ status, ...JSON.parse(body) }).toMatchObject({ status: 416, code: "range_not_satisfiable" });
    expect(headers["content-range"]).toBe("bytes */10");
  });

  test("a condition that the file does not fulfil is 412", async () => {
    const { status, body } = await getFile("a.js", { "if-match": '"other"' });
    expect({ status, ...JSON.parse(body) }).toMatchObject({ status: 412, code: "precondition_failed" });
  });
});
