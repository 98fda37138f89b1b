import { writeFileSync } from "node:fs";
import { appendFile, mkdir, readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { temporaryFolder } from "../../../../test/support/temporary.ts";
import { clearingSchema } from "../acquirer/iso8583/profile/schema.ts";
import { ServiceError } from "../errors.ts";
import type { FileLocks } from "../intake/folder-watch.ts";
import type { NewEvent } from "../telemetry/events.ts";
import { createLog } from "../telemetry/log.ts";
import { ClearingFolder } from "./folder.ts";

const pan = "4111111111111111";
const masked = "411111******1111";
const csv = { format: "csv", header: true, columns: { refId: "RRN", amount: "AMOUNT", date: "DATE" }, currency: "VND" };
const fixed = {
  format: "fixed",
  columns: { refId: { from: 1, length: 13 }, amount: { from: 32, length: 6 }, date: { from: 38, length: 8 } },
  currency: "VND",
};

let folder: string;
let section: object;
let events: NewEvent[];
let received: string[];
/** What was read, taken or not. */
let tried: string[];
/** Awaited while a file is received. */
let meanwhile: () => Promise<void> | void;
/** Awaited before an event is recorded. */
let recording: () => void;
/** The next one cannot be recorded at once. */
const recordsLater = () => {
  recording = () => {
    recording = () => undefined;
    throw new Error("the database is away");
  };
};
let drops: ClearingFolder[];
const held = new Set<string>();

beforeEach(async () => {
  folder = temporaryFolder();
  await mkdir(join(folder, "bank"));
  [section, events, received, tried, drops] = [csv, [], [], [], []];
  meanwhile = () => undefined;
  recording = () => undefined;
});
afterEach(async () => {
  await Promise.all(drops.map((drop) => drop.stop()));
});

function start(): ClearingFolder {
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
    await meanwhile();
    if (text.startsWith("bad")) throw new ServiceError("clearing_unreadable", "The file cannot be read: line 1.");
    if (text === "busy") throw new ServiceError("unavailable", "The database is away.");
    received.push(`${acquirer} ${name} ${text}`);
    return `the id of ${text}`;
  };
  const layoutOf = async () => ({ section: clearingSchema.parse(section), currencies: {}, timeZone: "UTC" });
  const drop = new ClearingFolder({
    folder,
    clearing: { receive, layoutOf },
    locks,
    events: {
      record(event) {
        recording();
        events.push(event);
      },
    },
    log: createLog("error", { write: () => undefined }),
    everyMs: 5,
  });
  drops.push(drop);
  drop.start();
  return drop;
}

const inFolder = (...path: string[]) => readdir(join(folder, "bank", ...path)).catch(() => []);
/** Whole from its first moment, as a sender should. */
const drop = async (name: string, content: string | Buffer) => {
  const path = join(folder, "bank", name);
  await writeFile(`${path}.part`, content);
  await rename(`${path}.part`, path);
};
const text = (...path: string[]) => readFile(join(folder, "bank", ...path), "utf8");
/** The names once the file that was dropped is gone. */
const retired = async (to: "done" | "failed") => {
  await expect.poll(async () => (await inFolder()).filter((name) => name.includes("csv"))).toEqual([]);
  return await inFolder(to);
};

test("a dropped file is read once by two instances, and moved; one that is being written is left alone", async () => {
  await drop("a.csv", "one");
  await drop("b.csv.part", "two");
  start();
  start();
  await expect.poll(() => inFolder()).toEqual(["b.csv.part", "done"]);
  expect(await inFolder("done")).toEqual(["a.csv", "a.csv.report.json"]);
  expect(received).toEqual(["bank a.csv one"]);
  expect((await stat(join(folder, "bank", "done", "a.csv"))).mode & 0o777).toBe(0o600);
});

test("a file that cannot be read is set aside with an event", async () => {
  recordsLater();
  await drop("x.csv", "bad");
  start();
  expect(await retired("failed")).toEqual(["x.csv", "x.csv.report.json"]);
  const reason = "The file cannot be read: line 1.";
  expect(events).toMatchObject([{ kind: "clearing_file_failed", detail: { acquirer: "bank", file: "x.csv", reason } }]);
  expect(JSON.parse(await text("failed", "x.csv.report.json"))).toMatchObject({ reason });
});

test("a corrected file that comes under the name of one that failed just before is read too", async () => {
  recording = () => writeFileSync(join(folder, "bank", "x.csv"), "corrected");
  await drop("x.csv", "bad");
  start();
  expect(await retired("failed")).toEqual(["x.csv", "x.csv.report.json"]);
  expect(await inFolder("done")).toEqual(["x.csv", "x.csv.report.json"]);
  expect(received).toEqual(["bank x.csv corrected"]);
});

test("a file for which the database is away is tried again, and delays no other", async () => {
  await drop("a.csv", "busy");
  await drop("b.csv", "of the same acquirer");
  await mkdir(join(folder, "default"));
  await writeFile(join(folder, "default", "c.csv"), "of another");
  start();
  await expect.poll(() => received).toEqual(["bank b.csv of the same acquirer", "default c.csv of another"]);
  await expect.poll(() => tried.filter((one) => one === "busy").length).toBeGreaterThan(1);
  expect(await inFolder()).toContain("a.csv");
  await drop("a.csv", "by now");
  await expect.poll(() => received).toContain("bank a.csv by now");
});

describe("card numbers", () => {
  test("are cut out of the cells of what is kept, and no other byte changes", async () => {
    const row = (card: string, cvv: string, more: string) => `000123456789,100,20251101,${card},${cvv},${more}\r\n`;
    const header = "\uFEFFRRN,AMOUNT,DATE,CARD,CVV2,NOTE\r\n";
    await drop("a.csv", header + row("none", "", "é") + row(pan, "123", `"to, ""${pan}"""`));
    start();
    expect(await retired("done")).toEqual(["a.csv", "a.csv.report.json"]);
    const cut = "(cut out: it held what looks like card data)";
    expect(await text("done", "a.csv")).toBe(
      `${header}${row("none", "", "é")}${row(masked, cut, `"to, ""${masked}"""`).trimEnd()}\n`,
    );
    expect(received[0]).toContain(pan);
  });

  test("are cut out of fixed columns wherever they begin, but not out of a reference that is known", async () => {
    section = fixed;
    // As a whole, the reference passes for no card number; with its neighbours it may.
    const line = (card: string) => `0011234567890${card}00000010020251101\n`;
    await drop("a.csv", line(` ${pan} `) + line(`9${pan}9`));
    start();
    await retired("done");
    // The digits after it make another one that passes by chance.
    expect(await text("done", "a.csv")).toBe(line(` ${masked} `) + line(`9${masked.replace(/1{4}$/, "*111")}9`));
  });

  test("are cut out of a file that cannot be read, whatever its form is", async () => {
    section = fixed;
    await drop("x.csv", `bad ${pan}\nbad2 77${pan}88 ${"7".repeat(9_000)}\n`);
    await drop("y.csv", Buffer.concat([Buffer.from(`bad 4111 1111 1111 1111 `), Buffer.from([0xff, 0x0a])]));
    start();
    await retired("failed");
    const kept = [await text("failed", "x.csv"), await text("failed", "y.csv")].join("");
    expect(kept).toContain(`bad ${masked}\n`);
    expect(kept).not.toMatch(/4111 ?1111 ?1111 ?1111/);
  });
});

test("files that an older version kept as they were are cut at the start, once, with an event each", async () => {
  const line = `RRN,AMOUNT,DATE,CARD\n000123456789,100,20251101,${pan}\n`;
  await mkdir(join(folder, "bank", "done"));
  await mkdir(join(folder, "bank", "failed"));
  await drop("done/a.csv", line);
  await drop("done/a.csv.report.json", '{"id":"the id"}\n');
  await drop("failed/x.csv", `bad ${pan}\n`);
  await drop("done/new.csv", line);
  await drop("done/new.csv.report.json", '{"id":"another","sha256":"00"}\n');
  recordsLater();
  start();
  start();
  const isCut = { sha256: expect.any(String) };
  const reportOf = async (...path: string[]) => JSON.parse(await text(...path));
  // A report is written last.
  await expect.poll(() => reportOf("done", "a.csv.report.json")).toEqual({ id: "the id", ...isCut });
  await expect.poll(() => reportOf("failed", "x.csv.report.json")).toEqual(isCut);
  expect(events).toHaveLength(2);
  expect(await text("done", "a.csv")).toBe(line.replace(pan, masked));
  expect(await text("failed", "x.csv")).toBe(`bad ${masked}\n`);
  expect((await stat(join(folder, "bank", "failed", "x.csv"))).mode & 0o777).toBe(0o600);
  expect(await text("done", "new.csv")).toBe(line);
  // Both folders are read at once.
  expect(events.map(({ kind, detail }) => [kind, detail["acquirer"], detail["file"]]).sort()).toEqual([
    ["clearing_file_cut", "bank", "done/a.csv"],
    ["clearing_file_cut", "bank", "failed/x.csv"],
  ]);
  await Promise.all(drops.map((one) => one.stop()));
  start();
  await drop("b.csv", "two");
  await retired("done");
  expect([events.length, received]).toEqual([2, ["bank b.csv two"]]);
});

test("a failed one of an older version is cut by no columns, as it may have others", async () => {
  section = fixed;
  await mkdir(join(folder, "bank", "failed"));
  await drop("failed/x.csv", `bad one ${pan}\n`);
  start();
  await expect.poll(() => events.length).toBe(1);
  expect(await text("failed", "x.csv")).toBe(`bad one ${masked}\n`);
});

describe("a process that is killed", () => {
  test("before it removed the file leaves one copy, and one file in the database", async () => {
    await drop("a.csv", `one ${pan}`);
    start();
    expect(await retired("done")).toEqual(["a.csv", "a.csv.report.json"]);
    const before = await text("done", "a.csv");
    // First: the folder writes its own copy as soon as the file is there.
    await drop(".a.csv.copy", "half a co");
    await drop("a.csv", `one ${pan}`);
    await expect.poll(() => received.length).toBe(2);
    expect(await retired("done")).toEqual(["a.csv", "a.csv.report.json"]);
    expect(await text("done", "a.csv")).toBe(before);
    await expect.poll(() => inFolder()).toEqual(["done"]);
  });

  test("leaves another file of the same name beside the first", async () => {
    start();
    for (const content of ["one", "two", "two", "three"]) {
      await drop("a.csv", content);
      await retired("done");
    }
    expect(await retired("done")).toHaveLength(6);
    expect([await text("done", "a.csv"), await text("done", "a.csv.2"), await text("done", "a.csv.3")]).toEqual([
      "one",
      "two",
      "three",
    ]);
  });
});

test("a file that grows while it is read is read again, and nothing of it is lost", async () => {
  meanwhile = async () => {
    meanwhile = () => undefined;
    await appendFile(join(folder, "bank", "a.csv"), " and more");
  };
  await drop("a.csv", "one");
  start();
  await retired("done");
  expect(received).toEqual(["bank a.csv one", "bank a.csv one and more"]);
  expect(await text("done", "a.csv")).toBe("one and more");
});

test("a stop ends the reading, and the file waits for the next start", async () => {
  await drop("a.csv", "busy");
  const stopped = Promise.withResolvers<Promise<void>>();
  meanwhile = () => stopped.resolve(first.stop());
  const first = start();
  await await stopped.promise;
  expect(await inFolder()).toEqual(["a.csv"]);
});
