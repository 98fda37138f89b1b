import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ServiceError } from "../errors.ts";
import type { NewEvent } from "../events.ts";
import type { FileLocks } from "../intake/file-drop/file-drop.ts";
import { createLog } from "../log.ts";
import { ClearingFolder } from "./folder.ts";

let folder: string;
let events: NewEvent[];
let received: string[];
/** What was read, taken or not. */
let tried: string[];
let drops: ClearingFolder[];
const held = new Set<string>();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "paybell-clearing-"));
  await mkdir(join(folder, "bank"));
  [events, received, tried, drops] = [[], [], [], []];
});
afterEach(async () => {
  await Promise.all(drops.map((drop) => drop.stop()));
  await rm(folder, { recursive: true });
});

function start(): void {
  const locks: FileLocks = {
    hold: async (name) => {
      if (held.has(name)) return undefined;
      held.add(name);
      return { lost: new AbortController().signal, release: async () => void held.delete(name) };
    },
    close: async () => undefined,
  };
  const receive = async (acquirer: string, name: string, bytes: AsyncIterable<Uint8Array>) => {
    let text = "";
    for await (const chunk of bytes) text += Buffer.from(chunk).toString();
    tried.push(text);
    if (text === "bad") throw new ServiceError("clearing_unreadable", "The file cannot be read: line 1.");
    if (text === "away") throw new Error("the database is away");
    if (text === "busy") throw new ServiceError("unavailable", "The database is away.");
    received.push(`${acquirer} ${name} ${text}`);
    return "its id";
  };
  const record = (event: NewEvent) => void events.push(event);
  const drop = new ClearingFolder({
    folder,
    clearing: { receive },
    locks,
    events: { record },
    log: createLog("error", { write: () => undefined }),
    everyMs: 5,
  });
  drops.push(drop);
  drop.start();
}

const inFolder = (...path: string[]) => readdir(join(folder, "bank", ...path)).catch(() => []);

test("a dropped file is read once by two instances, and moved; one that is being written is left alone", async () => {
  await writeFile(join(folder, "bank", "a.csv"), "one");
  await writeFile(join(folder, "bank", "b.csv.part"), "two");
  start();
  start();
  await expect.poll(() => inFolder("done")).toEqual(["a.csv", "a.csv.report.json"]);
  expect(received).toEqual(["bank a.csv one"]);
  expect(await inFolder()).toEqual(["b.csv.part", "done"]);
  expect((await stat(join(folder, "bank", "done", "a.csv"))).mode & 0o777).toBe(0o600);
});

test("a file that cannot be read is set aside with an event, and another failure is tried again", async () => {
  await mkdir(join(folder, "default"));
  await writeFile(join(folder, "bank", "bad.csv"), "bad");
  start();
  await expect.poll(() => inFolder("failed")).toEqual(["bad.csv", "bad.csv.report.json"]);
  const reason = "The file cannot be read: line 1.";
  expect(events).toMatchObject([
    { kind: "clearing_file_failed", detail: { acquirer: "bank", file: "bad.csv", reason } },
  ]);
  expect(await readFile(join(folder, "bank", "failed", "bad.csv.report.json"), "utf8")).toContain(reason);
  await writeFile(join(folder, "default", "c.csv"), "away");
  await writeFile(join(folder, "default", "c.csv"), "three");
  await expect.poll(() => received).toEqual([" c.csv three"]);
  await writeFile(join(folder, "default", "d.csv"), "busy");
  await expect.poll(() => tried.filter((text) => text === "busy").length).toBeGreaterThan(1);
  expect(await readdir(join(folder, "default"))).toEqual(["d.csv", "done"]);
});
