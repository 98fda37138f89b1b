import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { listening, temporaryFolder } from "../../../../test/support/temporary.ts";
import { readConfig } from "../config/config.ts";
import { feedFindings, intakeFindings, ownsTheSchema, permissionFinding, schemaFinding } from "./check.ts";

const find = async (url: string) => (await feedFindings(readConfig({ PAYBELL_FEED: url })))[0];

test("the check says whether the feed can be written", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "feed.jsonl");
  expect(await find(pathToFileURL(path).href)).toMatchObject({ level: "ok" });
  // As root it would make a file that the service may not write.
  expect(await readdir(folder)).toEqual([]);
  await writeFile(path, "{}\n");
  expect(await find(pathToFileURL(path).href)).toMatchObject({ level: "ok" });
  expect(await readFile(path, "utf8")).toBe("{}\n");
  expect(await find(pathToFileURL(folder).href)).toMatchObject({ level: "error" });
  expect(await find(pathToFileURL(join(folder, "none", "feed.jsonl")).href)).toMatchObject({ level: "error" });
  const server = createServer((socket) => socket.resume());
  const url = `syslog://127.0.0.1:${await listening(server)}`;
  expect(await find(url)).toEqual({ level: "ok", what: "feed", detail: `is written to ${url}`, remedy: "" });
  await once(server.close(), "close");
  expect(await find(url)).toMatchObject({ level: "error", detail: expect.stringContaining("ECONNREFUSED") });
  expect(await feedFindings(readConfig({}))).toEqual([]);
});

test("the check says whether the folder of completions can be used, and makes nothing in it", async () => {
  const folder = temporaryFolder();
  const levelOf = async (name: string) => (await intakeFindings({ intakeFolder: join(folder, name) }))[0]?.level;
  expect([await levelOf("."), await levelOf("none")]).toEqual(["ok", "error"]);
  expect(await readdir(folder)).toEqual([]);
  await writeFile(join(folder, "done"), "");
  expect(await levelOf(".")).toBe("error");
});

test.each(["feed.jsonl", "https://siem.example/", "syslog:", "file:///", "file://host/feed"])(
  "%s is refused as a target of the feed",
  (url) => {
    expect(() => readConfig({ PAYBELL_FEED: url })).toThrow(/PAYBELL_FEED must be file:\/\/\/path/);
  },
);

const schema = (found: Partial<Record<"applied" | "missing" | "newer", number>>) => ({
  applied: 94,
  missing: 0,
  newer: 0,
  ...found,
});

test.each([
  [{ applied: 0, missing: 94 }, "is created at the first start"],
  [{ newer: 1 }, "is a newer version's, on which this one runs too"],
  [{ missing: 2 }, "is brought up to date by 2 migrations"],
  [{}, "is this version's"],
])("a schema %j %s", (found, detail) => {
  expect(schemaFinding(schema(found))).toMatchObject({ level: "ok", detail });
});

test.each([
  ["an older schema needs a role that may change it", { missing: 1 }, false, [], false, "error"],
  ["which the owner's connection has", { missing: 1 }, false, [], true, "ok"],
  ["a newer schema needs none", { newer: 1 }, false, [], false, "ok"],
  ["a role that owns the schema is a warning", {}, true, [], false, "warning"],
  ["and so is one with more rights than it uses", {}, false, ["audit"], false, "warning"],
])("permission: %s", (_, found, canCreate, excessRights, hasOwner, level) => {
  const finding = permissionFinding({ canCreate, excessRights, schema: schema(found) }, hasOwner);
  expect(finding).toMatchObject({ what: "permission", level });
  expect(finding.detail === ownsTheSchema).toBe(canCreate);
});
