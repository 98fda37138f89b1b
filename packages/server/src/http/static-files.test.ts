import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLog } from "../log.ts";
import { handleFailures } from "./failures.ts";
import { staticFiles } from "./static-files.ts";

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

async function get(name: string, headers: Record<string, string> = {}) {
  const { statusCode, headers: answered, body } = await app.inject({ url: `/files/${name}`, headers });
  return { status: statusCode, headers: answered, body };
}

test("a file is sent, whole or in part", async () => {
  expect(await get("a.js")).toMatchObject({ status: 200, body: "0123456789" });
  expect(await get("a.js", { range: "bytes=2-3" })).toMatchObject({ status: 206, body: "23" });
});

test.each(["none.js", "%00", "a%5Cb", ".hidden", "%2e%2e/a.js", "a.js/b", longName])(
  "a name that no file has is 404: %s",
  async (name) => {
    const { status, body, headers } = await get(name);
    expect({ status, ...JSON.parse(body) }).toMatchObject({ status: 404, code: "not_found" });
    expect(headers["content-type"]).toBe("application/problem+json");
    expect(logged).toBe("");
  },
);

test("a range beyond the end is 416, with the length of the file", async () => {
  const { status, body, headers } = await get("a.js", { range: "bytes=99999999-" });
  expect({ status, ...JSON.parse(body) }).toMatchObject({ status: 416, code: "range_not_satisfiable" });
  expect(headers["content-range"]).toBe("bytes */10");
});

test("a condition that the file does not fulfil is 412", async () => {
  const { status, body } = await get("a.js", { "if-match": '"other"' });
  expect({ status, ...JSON.parse(body) }).toMatchObject({ status: 412, code: "precondition_failed" });
});
