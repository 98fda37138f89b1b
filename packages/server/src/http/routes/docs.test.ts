import { createHash } from "node:crypto";
import { caseCodes } from "@paybell/partner/certify";
import { afterEach, describe, expect, test } from "vitest";
import { misuses } from "../../../../partner/src/misused.ts";
import { refusals } from "../../../../partner/src/refused.ts";
import { alertKinds } from "../../alerts/store.ts";
import { errors } from "../../errors.ts";
import { HttpTestService } from "../service.fixture.ts";

let service: HttpTestService;
afterEach(() => service.close());

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

describe("the guides", () => {
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
      "/docs/partner/errors": Object.keys({ ...refusals, ...misuses }),
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
