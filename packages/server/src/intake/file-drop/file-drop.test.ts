import { once } from "node:events";
import { existsSync } from "node:fs";
import { appendFile, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { eventually } from "../../../../../test/support/service.ts";
import { temporaryFolder } from "../../../../../test/support/temporary.ts";
import type { CompletionRequest } from "../../commands/reports/completion.ts";
import { ServiceError } from "../../errors.ts";
import { newId } from "../../ids.ts";
import type { RefusedItem, ReportResult } from "../../ledger/reports/reports.ts";
import { partnerSnapshot } from "../../partners/partner.fixture.ts";
import type { NewEvent } from "../../telemetry/events.ts";
import { createLog } from "../../telemetry/log.ts";
import { createMetrics } from "../../telemetry/metrics.ts";
import type { FileLocks } from "../folder-watch.ts";
import { FileDrop } from "./file-drop.ts";
import { FileProgress, makeFolders } from "./progress.ts";

const partner = partnerSnapshot();
const sale = (externalId: string, change: Readonly<Record<string, unknown>> = {}) => ({
  partnerId: partner.id,
  externalId,
  command: "SALE",
  status: "SUCCESS",
  isoResponseCode: "00",
  amount: "5",
  currency: "VND",
  ...change,
});
const jsonLines = (items: readonly unknown[]) => items.map((item) => `${JSON.stringify(item)}\n`).join("");
const sales = (count: number, from = 0) => Array.from({ length: count }, (_, at) => sale(`s-${from + at}`));

/** A ledger in memory, and the drops that report to it. */
class Bench {
  readonly reported: CompletionRequest[] = [];
  readonly refused: RefusedItem[] = [];
  readonly events: NewEvent[] = [];
  readonly logged: string[] = [];
  readonly held = new Set<string>();
  /** Aborted when the lock of the file that is read now is lost. */
  lost = new AbortController();
  holds = 0;
  /** How often a reader found that another one has a file. */
  busy = 0;
  /** Awaited before an event is recorded. */
  recording: () => void = () => undefined;
  folder = "";
  /** Awaited before each report. */
  before: () => Promise<void> | void = () => undefined;
  readonly #drops: FileDrop[] = [];

  drop(): FileDrop {
    const metrics = createMetrics();
    metrics.close();
    const drop = new FileDrop({
      folder: this.folder,
      locks: this.#locks(),
      events: {
        record: async (event) => {
          this.recording();
          this.events.push(event);
        },
      },
      metrics,
      log: createLog("info", { write: (line) => void this.logged.push(line) }),
      everyMs: 5,
      directory: { find: async () => partner },
      isRegisteredDevice: async () => false,
      reports: {
        report: async (completions) => {
          await this.before();
          this.reported.push(...completions);
          return completions.map((completion) => this.#result(completion));
        },
        recordRefused: async (refused) => void this.refused.push(...refused),
      },
    });
    this.#drops.push(drop);
    drop.start();
    return drop;
  }

  async write(name: string, content: string | Buffer): Promise<void> {
    const path = join(this.folder, name);
    await writeFile(`${path}.part`, content);
    await rename(`${path}.part`, path);
  }

  async end(): Promise<void> {
    await Promise.all(this.#drops.map((drop) => drop.stop()));
  }

  /** The lines of a report, once its file is there. */
  report(name: string): Promise<Record<string, unknown>[]> {
    return eventually(`the report of ${name}`, async () => {
      // The report is moved first.
      if (!existsSync(join(this.folder, name))) return undefined;
      const text = await readFile(join(this.folder, `${name}.report.jsonl`), "utf8");
      return text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    });
  }

  #result({ externalId, amount }: CompletionRequest): ReportResult {
    if (amount !== "6") return { externalId, result: "accepted", transactionId: newId<"transaction">() };
    return { externalId, result: "conflict", problem: new ServiceError("report_conflict") };
  }

  #locks(): FileLocks {
    return {
      hold: async (name) => {
        if (this.held.has(name)) {
          this.busy += 1;
          return undefined;
        }
        this.held.add(name);
        this.holds += 1;
        this.lost = new AbortController();
        return { lost: this.lost.signal, release: async () => void this.held.delete(name) };
      },
      close: async () => undefined,
    };
  }
}

let bench: Bench;
beforeEach(async () => {
  bench = new Bench();
  bench.folder = temporaryFolder();
  await makeFolders(bench.folder);
});
afterEach(() => bench.end());

describe("a file of JSON lines", () => {
  test("is reported line by line, and its report says what was not accepted, and where", async () => {
    const [a, b, c, d] = ["a", "b", "c", "d"].map((externalId) => sale(externalId));
    const bad = { ...b, amount: "x", surprise: "4111111111111111" };
    const lines = [`\uFEFF${JSON.stringify(a)}`, JSON.stringify(bad), "", "{nonsense", "[1]", '{"a":1,"a":2}'];
    await bench.write("one.jsonl", [...lines, JSON.stringify({ ...c, amount: "6" }), JSON.stringify(d)].join("\r\n"));
    bench.drop();
    const report = await bench.report("done/one.jsonl");
    expect(bench.reported.map(({ externalId }) => externalId)).toEqual(["a", "c", "d"]);
    expect(report).toMatchObject([
      { line: 2, externalId: "b", result: "refused", errors: [{ field: "surprise" }, { field: "amount" }] },
      { line: 4, result: "refused", code: "invalid_json", detail: "The line is not well-formed JSON." },
      { line: 5, result: "refused", code: "invalid_json" },
      { line: 6, result: "refused", code: "invalid_json" },
      { line: 7, externalId: "c", result: "conflict", code: "report_conflict" },
      { file: "one.jsonl", entries: 7, accepted: 2, duplicate: 0, conflict: 1, refused: 4 },
    ]);
    expect(bench.refused.map(({ item }) => item)).toEqual([bad, "{nonsense\r", [1], '{"a":1,"a":2}\r']);
    expect(JSON.stringify(report)).not.toContain("4111111111111111");
    await expect.poll(() => readdir(join(bench.folder, "reading"))).toEqual([]);
  });

  test("of another ending, hidden, or still being written is left alone", async () => {
    for (const name of ["a.jsonl.part", ".b.jsonl", "c.txt"]) {
      await writeFile(join(bench.folder, name), jsonLines([sale(name)]));
    }
    await bench.write("z.jsonl", jsonLines([sale("z")]));
    bench.drop();
    await bench.report("done/z.jsonl");
    expect(bench.reported.map(({ externalId }) => externalId)).toEqual(["z"]);
    await rename(join(bench.folder, "a.jsonl.part"), join(bench.folder, "a.jsonl"));
    await bench.report("done/a.jsonl");
    expect((await readdir(bench.folder)).sort()).toEqual([".b.jsonl", "c.txt", "done", "failed", "reading"]);
  });

  test("that is dropped again does not replace the one before", async () => {
    bench.drop();
    await bench.write("a.jsonl", jsonLines([sale("1")]));
    await bench.report("done/a.jsonl");
    await bench.write("a.jsonl", jsonLines([sale("2"), sale("3")]));
    expect(await bench.report("done/a.2.jsonl")).toMatchObject([{ file: "a.jsonl", entries: 2 }]);
  });

  test("that is named by a card number is read, and no log, report or event repeats the number", async () => {
    const name = "5555555555554444.jsonl";
    bench.before = () => appendFile(join(bench.folder, name), "{");
    await bench.write(name, jsonLines([sale("1")]));
    bench.drop();
    const report = await bench.report(`failed/${name}`);
    await expect.poll(() => bench.logged.join("")).toContain("a file was read");
    expect(JSON.stringify([report, bench.events, bench.logged])).not.toContain("5555555555554444");
  });

  test("that grows while it is read is set aside once its event is recorded, and says why", async () => {
    bench.recording = () => {
      bench.recording = () => undefined;
      throw new Error("the database is away");
    };
    bench.before = () => appendFile(join(bench.folder, "a.jsonl"), "{");
    await bench.write("a.jsonl", jsonLines([sale("1")]));
    bench.drop();
    const report = await bench.report("failed/a.jsonl");
    expect(report.at(-1)).toMatchObject({
      accepted: 1,
      reason: expect.stringContaining("was changed while it was read"),
    });
    expect(bench.events).toMatchObject([
      { kind: "intake_file_failed", detail: { file: "a.jsonl", report: "failed/a.jsonl.report.jsonl" } },
    ]);
  });
});

describe("card data in a file", () => {
  const pan = "4111111111111111";
  const kept = async (name: string) => {
    await bench.report(name);
    const path = join(bench.folder, name);
    return { text: await readFile(path, "utf8"), mode: (await stat(path)).mode & 0o777 };
  };
  const cut = "(cut out: it held what looks like card data)";

  test("is cut out, and only the service's account may read what is left", async () => {
    const mid = "100000000000009";
    const good = JSON.stringify(sale("a", { mid }));
    const bad = [
      sale("b", { billId: pan, mid }),
      sale("c", { card: { cvvCode: "123" }, list: [pan] }),
      sale(pan, { surprise: "x" }),
    ];
    const nonsense = [`{"pan":"${pan}`, "{nonsense"];
    const lines = [good, ...bad.map((item) => JSON.stringify(item)), ...nonsense];
    await bench.write("pan.jsonl", `${lines.join("\n")}\n`);
    bench.drop();
    const { text, mode } = await kept("done/pan.jsonl");
    expect(JSON.stringify(await bench.report("done/pan.jsonl"))).not.toContain(pan);
    expect(mode).toBe(0o600);
    expect(text.split("\n")).toEqual([
      good,
      JSON.stringify(sale("b", { billId: cut, mid })),
      JSON.stringify(sale("c", { card: { cvvCode: cut }, list: [cut] })),
      JSON.stringify(sale(cut, { surprise: "x" })),
      cut,
      "{nonsense",
      "",
    ]);
    // The copy is there before the file is removed.
    await expect.poll(async () => (await readdir(bench.folder)).sort()).toEqual(["done", "failed", "reading"]);
    await expect.poll(() => readdir(join(bench.folder, "reading"))).toEqual([]);
  });

  test("is cut out of the cells of CSV, also of a file that cannot be read", async () => {
    const header = "partnerId,externalId,command,status,isoResponseCode,amount,currency,mid,billId";
    const row = (externalId: string, billId: string) =>
      `${partner.id},${externalId},SALE,SUCCESS,00,5,VND,100000000000009,${billId}`;
    await bench.write("pan.csv", `${header}\n${row("a", "one")}\n${row("b", `"to, ${pan}"`)}\nshort\n`);
    await bench.write("x.csv", `externalId,cvv,track2\na,123,;4111111111111112=25121010000?\n`);
    bench.drop();
    expect(await kept("done/pan.csv")).toEqual({
      text: `${header}\n${row("a", "one")}\n${row("b", cut)}\nshort\n`,
      mode: 0o600,
    });
    expect(await kept("failed/x.csv")).toEqual({ text: `externalId,cvv,track2\na,${cut},${cut}\n`, mode: 0o600 });
  });

  test("is cut out of what was in conflict", async () => {
    await bench.write("a.jsonl", jsonLines([sale("a", { amount: "6", billId: pan })]));
    bench.drop();
    expect((await kept("done/a.jsonl")).text).toBe(jsonLines([sale("a", { amount: "6", billId: cut })]));
  });

  test("a refused file without any is left as it was, byte for byte", async () => {
    const content = Buffer.concat([Buffer.from('\uFEFF{"externalId":"a"}\r\n'), Buffer.from([0xff, 0xfe])]);
    await bench.write("a.jsonl", content);
    bench.drop();
    await bench.report("done/a.jsonl");
    expect(await readFile(join(bench.folder, "done/a.jsonl"))).toEqual(content);
  });
});

describe("a CSV file", () => {
  const header = "partnerId,externalId,command,status,isoResponseCode,amount,currency";
  const row = (externalId: string, more = "") => `${partner.id},${externalId},SALE,SUCCESS,00,5,VND${more}`;
  const euro = Buffer.from("\u20ac").subarray(0, 2);

  test("has the fields by its first line; an empty cell is a field left out", async () => {
    const rows = [`${header},billId,cardHolder`, row("a", ',"bill, ""1""",'), row("b"), row("c", ",,A\nB"), ""];
    await bench.write("a.csv", rows.join("\r\n"));
    bench.drop();
    expect(await bench.report("done/a.csv")).toMatchObject([
      { line: 3, externalId: "b", detail: "The line has 7 cells, and the first line 9." },
      { line: 5, result: "refused", detail: "The line has 1 cells, and the first line 9." },
      { entries: 4, accepted: 2, refused: 2 },
    ]);
    expect(bench.reported).toEqual([sale("a", { billId: 'bill, "1"' }), sale("c", { cardHolder: "A" })]);
  });

  test("a settlement's list is JSON in its cell", async () => {
    const columns =
      "partnerId,externalId,command,status,saleQuantity,saleTotalAmount,voidQuantity,voidTotalAmount,settlementList";
    const values = `${partner.id},s,SETTLEMENT,SUCCESS,1,5,0,0,"[{""reqId"":""r"",""refNo"":""1""}]"`;
    await bench.write("s.csv", `${columns}\n${values}\n`);
    bench.drop();
    await bench.report("done/s.csv");
    expect(bench.reported).toMatchObject([{ settlementList: [{ reqId: "r", refNo: "1" }] }]);
  });

  test.each([
    [
      "names a column that is no field",
      "amount,amout,4111111111111111\n1,2,3\n",
      0,
      "no fields: amout, [a card number].",
    ],
    ["names a column twice", "amount,amount\n1,2\n", 0, "names a column twice"],
    ["is empty", "", 0, "The file is empty"],
    ["is not UTF-8", Buffer.from(`${header}\n\xff`, "latin1"), 0, "is not UTF-8"],
    ["ends within a character", Buffer.concat([Buffer.from(`${header}\n${row("a")}\n`), euro]), 1, "is not UTF-8"],
    ["has a quote that never ends", `${header}\n${row("a")}\n${row("b", ',"')}`, 1, "a quote is not closed"],
    ["has text after a quote", `${header}\n${row("a")}\n"x"y,\n${row("b")}\n`, 1, "follows a closing quote"],
  ])(
    "that %s is set aside with the reason, and what stands before is reported",
    async (_, content, accepted, reason) => {
      await bench.write("bad.csv", content);
      bench.drop();
      const report = await bench.report("failed/bad.csv");
      expect(report.at(-1)).toMatchObject({ accepted, reason: expect.stringContaining(reason) });
      expect(bench.events).toMatchObject([
        { kind: "intake_file_failed", detail: { reason: expect.stringContaining(reason) } },
      ]);
    },
  );
});

test("a file that cannot be read now is named, tried again, and delays no other", async () => {
  const obstacle = join(bench.folder, "reading", "a.jsonl.report.jsonl");
  await mkdir(obstacle);
  await bench.write("a.jsonl", jsonLines(sales(1)));
  await bench.write("b.jsonl", jsonLines(sales(1, 1)));
  bench.drop();
  await bench.report("done/b.jsonl");
  expect(bench.logged.find((line) => line.includes("EISDIR"))).toContain('"file":"a.jsonl"');
  await rm(obstacle, { recursive: true });
  await bench.report("done/a.jsonl");
});

test("a folder that was emptied by removing it is made again, and a file that failed is one event", async () => {
  for (const folder of ["done", "failed"]) await rm(join(bench.folder, folder), { recursive: true });
  await bench.write("a.csv", "no fields\n");
  await bench.write("b.jsonl", jsonLines(sales(1)));
  bench.drop();
  await bench.report("done/b.jsonl");
  await bench.report("failed/a.csv");
  expect(bench.events.map(({ kind }) => kind)).toEqual(["intake_file_failed"]);
});

test("a file that cannot be opened delays no other", async () => {
  // Root may open any file, but no socket: it counts as a file whose reading was begun.
  const socket = createServer().listen(join(bench.folder, "a.jsonl"));
  await once(socket, "listening");
  onTestFinished(() => void socket.close());
  await writeFile(join(bench.folder, "reading", "a.jsonl.progress.json"), "{}");
  await bench.write("b.jsonl", jsonLines(sales(1)));
  bench.drop();
  await bench.report("done/b.jsonl");
  expect(bench.logged.find((line) => line.includes("ENXIO"))).toContain('"file":"a.jsonl"');
});

describe("each line once", () => {
  test("a reader that stops goes on where it was, and its report is whole", async () => {
    const second = Promise.withResolvers<void>();
    let calls = 0;
    bench.before = () => {
      calls += 1;
      if (calls === 3) second.resolve();
    };
    const items: unknown[] = sales(4_500);
    items[10] = sale("s-10", { amount: "6" });
    items[4_400] = sale("s-4400", { amount: "6" });
    await bench.write("a.jsonl", jsonLines(items));
    const first = bench.drop();
    await second.promise;
    await first.stop();
    expect(bench.reported.length).toBeLessThan(4_500);
    bench.drop();
    const report = await bench.report("done/a.jsonl");
    expect(report).toMatchObject([{ line: 11 }, { line: 4_401 }, { entries: 4_500, accepted: 4_498, conflict: 2 }]);
    expect(bench.reported.map(({ externalId }) => externalId)).toEqual(
      sales(4_500).map(({ externalId }) => externalId),
    );
  });

  test("a reader that stops has ended what it had in hand", async () => {
    const [reached, going] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    bench.before = async () => {
      reached.resolve();
      await going.promise;
    };
    await bench.write("a.jsonl", jsonLines(sales(1)));
    const drop = bench.drop();
    await reached.promise;
    const stopped = drop.stop().then(() => bench.reported.length);
    setImmediate(going.resolve);
    expect(await stopped).toBe(1);
  });

  test("what a reader had read when it was killed is moved, not read again; another file of the name is read", async () => {
    const sum = '{"file":"a.jsonl","entries":1}\n';
    const counts = { entries: 1, accepted: 1, duplicate: 0, conflict: 0, refused: 0, reportBytes: sum.length };
    const begun = async (name: string, isEnded: boolean, of: { bytes?: number; modifiedMs?: number } = {}) => {
      const end = { folder: "done", name, reason: "" };
      const progress = { bytes: 1, modifiedMs: 1, ...of, ...counts, ...(isEnded && { end }) };
      await writeFile(join(bench.folder, "reading", `${name}.progress.json`), JSON.stringify(progress));
    };
    for (const name of ["a", "b"]) await bench.write(`${name}.jsonl`, jsonLines([sale(name)]));
    const { size: bytes, mtimeMs: modifiedMs } = await stat(join(bench.folder, "a.jsonl"));
    await begun("a.jsonl", true, { bytes, modifiedMs });
    // Its report was moved already.
    await writeFile(join(bench.folder, "done", "a.jsonl.report.jsonl"), sum);
    await begun("b.jsonl", true);
    // The file of one was moved already, that of the other is gone.
    await begun("c.jsonl", true);
    await begun("d.jsonl", false);
    bench.drop();
    expect(await bench.report("done/a.jsonl")).toEqual([{ file: "a.jsonl", entries: 1 }]);
    expect(await bench.report("done/b.jsonl")).toMatchObject([{ entries: 1, accepted: 1 }]);
    expect(bench.reported.map(({ externalId }) => externalId)).toEqual(["b"]);
    await expect.poll(() => readdir(join(bench.folder, "reading"))).toEqual([]);
  });

  test("a reader that loses its lock leaves the file to the next one", async () => {
    bench.before = () => {
      bench.before = () => undefined;
      bench.lost.abort();
    };
    await bench.write("a.jsonl", jsonLines(sales(1_500)));
    bench.drop();
    expect(await bench.report("done/a.jsonl")).toMatchObject([{ entries: 1_500, accepted: 1_500 }]);
    expect([bench.holds, bench.reported.length]).toEqual([2, 1_500]);
  });

  test("a file waits while another reader has one before it: a settlement comes after its Sales", async () => {
    const [reached, going] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let reports = 0;
    bench.before = async () => {
      reports += 1;
      reached.resolve();
      await going.promise;
    };
    for (const name of ["a", "b"]) await bench.write(`${name}.jsonl`, jsonLines([sale(name)]));
    bench.drop();
    await reached.promise;
    bench.drop();
    await expect.poll(() => reports > 1 || bench.busy > 2).toBe(true);
    const begun = reports;
    going.resolve();
    await bench.report("done/b.jsonl");
    expect(begun).toBe(1);
    expect(bench.reported.map(({ externalId }) => externalId)).toEqual(["a", "b"]);
  });

  test("a file waits while the lock of one before it is lost", async () => {
    bench.before = () => {
      bench.before = () => undefined;
      bench.lost.abort();
    };
    await bench.write("a.jsonl", jsonLines(sales(1_500)));
    await bench.write("b.jsonl", jsonLines(sales(1, 1_500)));
    bench.drop();
    await bench.report("done/b.jsonl");
    expect(bench.reported.map(({ externalId }) => externalId)).toEqual(
      sales(1_501).map(({ externalId }) => externalId),
    );
  });

  test("a file waits while the results of one before it cannot be kept", async () => {
    const obstacle = join(bench.folder, "reading", "a.jsonl.progress.json.new");
    bench.before = async () => {
      bench.before = () => rm(obstacle, { recursive: true, force: true });
      await mkdir(obstacle);
    };
    await bench.write("a.jsonl", jsonLines(sales(1_500)));
    await bench.write("b.jsonl", jsonLines(sales(1, 1_500)));
    bench.drop();
    await bench.report("done/b.jsonl");
    expect([...new Set(bench.reported.map(({ externalId }) => externalId))]).toEqual(
      sales(1_501).map(({ externalId }) => externalId),
    );
    expect(bench.logged.find((line) => line.includes("EISDIR"))).toContain('"file":"a.jsonl"');
  });

  test("a file that came in the place of one that was being read is read from its beginning", async () => {
    const second = Promise.withResolvers<void>();
    let calls = 0;
    bench.before = () => {
      calls += 1;
      if (calls === 2) second.resolve();
    };
    await bench.write("a.jsonl", jsonLines([sale("s-0", { amount: "6" }), ...sales(2_500, 1)]));
    const first = bench.drop();
    await second.promise;
    await first.stop();
    await bench.write("a.jsonl", jsonLines(sales(3, 9_000)));
    bench.drop();
    expect(await bench.report("done/a.jsonl")).toEqual([expect.objectContaining({ entries: 3, accepted: 3 })]);
    expect(bench.reported.slice(-3).map(({ externalId }) => externalId)).toEqual(["s-9000", "s-9001", "s-9002"]);
  });

  test("a file that came when another of its name had just been read is read too", async () => {
    await bench.write("a.jsonl", jsonLines(sales(1)));
    const first = (await FileProgress.of(bench.folder, "a.jsonl")) ?? expect.fail("it is there");
    expect(await first.isUnchanged()).toBe(true);
    await bench.write("a.jsonl", jsonLines(sales(2, 5)));
    await first.moveTo(await first.complete("done", ""));
    expect(await readdir(bench.folder)).toContain("a.jsonl");
    bench.drop();
    expect(await bench.report("done/a.2.jsonl")).toMatchObject([{ entries: 2, accepted: 2 }]);
    expect(bench.reported.map(({ externalId }) => externalId)).toEqual(["s-5", "s-6"]);
    expect(await readFile(join(bench.folder, "done/a.jsonl.report.jsonl"), "utf8")).toContain('"entries":0');
  });

  test("a line of the report that was not kept is written again, once", async () => {
    const reading = join(bench.folder, "reading");
    await mkdir(reading, { recursive: true });
    await bench.write("a.jsonl", jsonLines([sale("1", { amount: "6" })]));
    await writeFile(join(reading, "a.jsonl.report.jsonl"), '{"line":1}\n{"li');
    bench.drop();
    expect(await bench.report("done/a.jsonl")).toMatchObject([{ line: 1, result: "conflict" }, { entries: 1 }]);
  });

  test("an entry that cannot be made durable is reported again until it is", async () => {
    let calls = 0;
    bench.before = () => {
      calls += 1;
      if (calls === 1) throw new ServiceError("unavailable");
    };
    await bench.write("a.jsonl", jsonLines(sales(3)));
    bench.drop();
    expect(await bench.report("done/a.jsonl")).toMatchObject([{ accepted: 3, refused: 0 }]);
    expect(bench.refused).toEqual([]);
  });

  test("two readers of one folder take each file once", async () => {
    for (let at = 0; at < 20; at += 1) await bench.write(`${at}.jsonl`, jsonLines(sales(50, at * 50)));
    bench.drop();
    bench.drop();
    for (let at = 0; at < 20; at += 1) await bench.report(`done/${at}.jsonl`);
    expect(new Set(bench.reported.map(({ externalId }) => externalId)).size).toBe(1_000);
    expect(bench.reported).toHaveLength(1_000);
  });
});
