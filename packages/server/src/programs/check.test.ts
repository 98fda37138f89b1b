import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { readConfig } from "../config.ts";
import { feedFindings } from "./check.ts";

const find = async (url: string) => (await feedFindings(readConfig({ PAYBELL_FEED: url })))[0];

test("the check says whether the feed can be written", async () => {
  const folder = await mkdtemp(join(tmpdir(), "paybell-feed-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  expect(await find(pathToFileURL(join(folder, "feed.jsonl")).href)).toMatchObject({ level: "ok" });
  expect(await find(pathToFileURL(join(folder, "none", "feed.jsonl")).href)).toMatchObject({ level: "error" });
  const server = createServer((socket) => socket.resume());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `syslog://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect(await find(url)).toEqual({ level: "ok", what: "feed", detail: `is written to ${url}`, remedy: "" });
  await once(server.close(), "close");
  expect(await find(url)).toMatchObject({ level: "error", detail: expect.stringContaining("ECONNREFUSED") });
  expect(await feedFindings(readConfig({}))).toEqual([]);
});

test.each(["feed.jsonl", "https://siem.example/", "syslog:", "file:///", "file://host/feed"])(
  "%s is refused as a target of the feed",
  (url) => {
    expect(() => readConfig({ PAYBELL_FEED: url })).toThrow(/PAYBELL_FEED must be file:\/\/\/path/);
  },
);
