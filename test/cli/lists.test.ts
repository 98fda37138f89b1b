import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers/promises";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { meant } from "../../packages/cli/src/client/lists.ts";
import { CommandLine } from "./command-line.ts";

/** The waits between the requests of --follow, which take no time here. */
const waits: number[] = [];
const { setTimeout: realSleep } = timers;
beforeEach(() => {
  waits.splice(0);
  timers.setTimeout = ((ms, value, options) => {
    waits.push(ms ?? 0);
    return timers.setImmediate(value, options);
  }) as typeof realSleep;
  syncBuiltinESMExports();
});
afterEach(() => {
  timers.setTimeout = realSleep;
  syncBuiltinESMExports();
});

const id = "01a1fc40-577c-728c-bd54-142edc79a51f";
const other = "01a1fc40-577c-728c-bd54-142edc79a520";
const at = "2026-11-22T14:05:00.000Z";
const totals = { saleQuantity: 1, saleTotalAmount: "1", voidQuantity: 0, voidTotalAmount: "0", netAmount: "1" };

/** One that has what every list shows. */
const item = {
  ...{ id, seq: 7, at, createdAt: at, closedAt: at, receivedAt: at, expiresAt: at, startedAt: at, dueAt: at },
  ...{ name: "first", state: "parked", kind: "card", command: "SALE", role: "admin", action: "rotateKey", input: {} },
  ...{ partnerId: id, partnerName: "Corner Shop", proposedBy: "Ada", actor: "Ada", revokedAt: null, lastUsedAt: null },
  ...{ subject: {}, attemptsMade: 3, target: "https://shop.example", failures: 3, probeAt: null, tid: "T0000001" },
  ...{ settings: { name: "Corner Shop" }, keys: [], profile: { name: "host" }, hosts: ["host:1"], differences: [] },
  ...{ batchNo: "000001", status: "SUCCESS", mid: "M1", merchantName: "Shop", ...totals },
};
const key = { id, kind: "apiKey", name: "till", expiresAt: null, lastUsedAt: null };

const line = new CommandLine({
  PAYBELL_URL: "http://127.0.0.1:1",
  PAYBELL_OPERATOR_TOKEN: "operator-token-of-the-tests",
  PAYBELL_API_KEY: "pb_key-of-the-tests",
});
afterAll(() => line.remove());

/** Answers every list with the same items, and records what was asked. */
function service(...items: readonly object[]) {
  const asked: URL[] = [];
  const answer: typeof fetch = async (input) => {
    const url = new URL(String(input));
    asked.push(url);
    const page = { items: url.searchParams.has("after") ? [] : items, next: null };
    return Response.json({ ...page, lines: [item], totals: [item], isComplete: true, keys: [key] });
  };
  return { asked, fetch: answer };
}

test.each([
  [["partner", "list"], "ID  STATE  NAME"],
  [["terminal", "list", "--partner", id], "TID  MID  MERCHANT NAME"],
  [["operator", "list"], "ID  NAME  ROLE  TOKEN"],
  [["api-key", "list", "--partner", id], "ID  NAME  SCOPES  USE"],
  [["proposal", "list"], "ID  PROPOSED BY  UNTIL  PROPOSAL"],
  [["acquirer", "list"], "NAME  PROFILE  HOSTS"],
  [["endpoint", "list"], "STATE  TARGET  FAILURES  PARTNER  ID"],
  [["audit", "list"], "NUMBER  AT  ACTOR  ROLE  ACTION  SUBJECT"],
  [["notifications", "list"], "CREATED AT  PARTNER  COMMAND  ID  STATE"],
  [["notifications", "list", "--as", "partner"], "CREATED AT  KIND  ID  STATE"],
  [["transaction", "list"], "CREATED AT  COMMAND  STATE  TID  ID"],
  [["batch", "list"], "CLOSED AT  TID  MID  BATCH NO  SALE QUANTITY  ID"],
  [["settlement", "list"], "CREATED AT  KIND  TID  STATE  DUE AT  ID"],
  [["reversal", "list"], "CREATED AT  COMMAND  STATE  TID  DUE AT  ID"],
  [["event", "list"], "AT  KIND  PARTNER ID  ID"],
  [["clearing", "files"], "RECEIVED AT  NAME  STATE  ID"],
  [["clearing", "exceptions"], "CREATED AT  KIND  STATE  ID"],
  [["statement", "day", "2026-11-21"], "AT  COMMAND  STATUS  ID"],
  [["statement", "batches"], "CLOSED AT  TID  BATCH NO  NET AMOUNT  SOLD  VOIDED  ID"],
  [["statement", "settlements"], "CREATED AT  STATUS  TID  BATCH NO  SOLD  VOIDED  ID"],
])("paybell %j has headers", async (args, headers) => {
  const { code, stdout, stderr } = await line.run(args, { fetch: service(item).fetch });
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout.split("\n")[0]?.replaceAll(/ {2,}/g, "  ")).toBe(headers);
});

test.each([
  ["notifications", "list"],
  ["transaction", "list"],
  ["statement", "batches"],
  ["clearing", "exceptions"],
])("paybell %s %s says that it ends at --limit if there is more, and to a program nothing else", async (...words) => {
  const pages = (next: string | null) => async () => Response.json({ items: [item], next });
  for (const [next, limit, said] of [
    ["more", "1", "These are 1, and there may be more: --limit sets how many.\n"],
    [null, "1", ""],
    [null, "2", ""],
  ] as const) {
    const args = [...words, "--limit", limit];
    expect(await line.run(args, { fetch: pages(next) })).toMatchObject({ code: 0, stderr: said });
    expect(await line.run([...args, "--json"], { fetch: pages(next) })).toMatchObject({ code: 0, stderr: "" });
  }
});

test.each([
  [["notifications", "list", "--as", "partner", "--limit", "600"], "limit=500 after=c1&limit=100"],
  [
    ["transaction", "list", "--state", "error", "--limit", "600"],
    "state=ERROR&limit=500 state=ERROR&after=c1&limit=100",
  ],
  [["partner", "list"], "limit=500 after=c1&limit=500 after=c2&limit=500"],
])("%j reads page after page, and no more than --limit", async (list, expected) => {
  const asked: string[] = [];
  const pages: typeof fetch = async (input) => {
    const { search, searchParams } = new URL(String(input));
    asked.push(search.slice(1));
    const all = Array.from({ length: Number(searchParams.get("limit")) }, () => ({ ...item, page: asked.length }));
    return Response.json({ items: all, next: asked.length === 3 ? null : `c${asked.length}` });
  };
  const { items } = (await line.run([...list, "--json"], { fetch: pages })).json<{ items: { page: number }[] }>();
  expect(asked.join(" ")).toBe(expected);
  const ofPage = asked.flatMap((search, at) => Array(Number(/limit=(\d+)/.exec(search)?.[1])).fill(at + 1));
  expect(items.map(({ page }) => page)).toEqual(ofPage);
});

const money = {
  ...{ ...item, currency: "VND", netAmount: "50", movement: "-7", merchantTransId: "order-1", notificationId: "n" },
  ...{ saleQuantity: 1, voidQuantity: 2, refundQuantity: 3, reversedQuantity: 4, isoResponseCode: "00" },
  ...{ saleTotalAmount: "10", voidTotalAmount: "20", refundTotalAmount: "30", reversedTotalAmount: "40" },
  ...{ saleTotalMinor: "1000", amount: "9", acquirer: "bank", line: null, here: { refId: "r-2" } },
  ...{ lines: 1, matched: 2, missingHere: 3, missingThere: 4, different: 5 },
  differences: [{ field: "amount", here: "1", there: "2" }],
};
const figures = {
  ...{ accepted: 1, failed: 2, parked: 3, points: [], attemptP50Ms: 4, attemptP99Ms: 5, deliveryP50Ms: 6 },
  ...{ deliveryP99Ms: null, asOf: at },
};
const standing = { parked: 4, tripped: 5, reversalsParked: 6, reversalsPending: 7, settlementsWaiting: 8 };
const overview = { figures, standing, trouble: [], parked: [], pending: 9, oldestPendingAt: at };

test.each([
  [["statement", "day", "2026-11-21"], {}, `${at}  SALE card  SUCCESS  VND  -7  order-1  ${id}  n`],
  [["statement", "day", "2026-11-21"], { kind: "transaction" }, `${at}  SALE  SUCCESS  VND  -7  order-1  ${id}  n`],
  [
    ["statement", "day", "2026-11-21"],
    { kind: "reversal" },
    `${at}  SALE reversed  SUCCESS  VND  -7  order-1  ${id}  n`,
  ],
  [["statement", "day", "2026-11-21"], {}, "VND  50  1 for 10  2 for 20  3 for 30  4 for 40"],
  [["statement", "batches"], {}, `${at}  T0000001  000001  VND  50  1  2  3  ${id}`],
  [["statement", "settlements"], {}, `${at}  SUCCESS  00  T0000001  000001  VND  10  20  ${id}`],
  [["batch", "list"], {}, `${at}  T0000001  M1  000001  VND  1  1000  ${id}`],
  [["transaction", "list"], {}, `${at}  SALE  parked  9  VND  T0000001  ${id}`],
  [["clearing", "files"], {}, `${at}  bank  first  parked  1  2  3  4  5  ${id}`],
  [["clearing", "exceptions"], {}, `${at}  card  parked  bank  r-2  amount 1, there 2  ${id}`],
  [["clearing", "exceptions"], { line: { refId: "r-1" } }, `${at}  card  parked  bank  r-1  amount 1, there 2  ${id}`],
  ...["Accepted  1", "Failed  2 attempts", "Parked  3", "Attempt  p50 4 ms, p99 5 ms", "Delivery  p50 6 ms, p99 –"].map(
    (row): [string[], object, string] => [["partner", "statistics", id], figures, row],
  ),
  ...[
    ...["Accepted  1", "Failed  2 attempts", "Parked  3, 4 in all", "Pending  9, the oldest for 60 s"],
    ...["Circuits  5 open or gone", "Money  6 Reversals parked, 7 pending, 8 settlements waiting"],
  ].map((row): [string[], object, string] => [["top"], overview, row]),
])("paybell %j of %j has each figure in its column", async (args, change, row) => {
  const shown = { ...money, ...change };
  const answer: typeof fetch = async () =>
    Response.json({ ...change, items: [shown], next: null, lines: [shown], totals: [shown], isComplete: true });
  const nowMs = () => Date.parse(at) + 60_000;
  const { stdout } = await line.run(args, { fetch: answer, nowMs });
  expect(stdout.split("\n").map((text) => text.replaceAll(/ {2,}/g, "  "))).toContain(row);
  expect(stdout).not.toContain("not over");
});

test("status says what is not ready, also while nothing else can be read", async () => {
  const checks = { database: { ok: false, detail: "cannot be reached" }, lease: { ok: false, detail: "lost" } };
  const without: typeof fetch = async (input) =>
    String(input).endsWith("/readyz")
      ? Response.json({ ready: false, checks }, { status: 503 })
      : Response.json({ code: "unavailable", detail: "It cannot be read now." }, { status: 503 });
  const ran = await line.run(["status"], { fetch: without });
  expect([ran.code, ran.stdout]).toEqual([
    1,
    "Not ready\n  ✗  database  cannot be reached\n  ✗  lease     lost\n\nThe rest cannot be read: It cannot be read now.\n",
  ]);
  expect((await line.run(["status", "--json"], { fetch: without })).json()).toEqual({ ready: false, checks });
  const refused: typeof fetch = async (input) =>
    String(input).endsWith("/readyz") ? without(input) : Response.json({ code: "c", detail: "D" }, { status: 401 });
  expect((await line.run(["status"], { fetch: refused })).code).toBe(3);
});

describe("--since", () => {
  const nowMs = () => Date.parse(at);

  test.each(["notifications", "audit"])("of %s is asked of the service", async (noun) => {
    const { asked, fetch } = service(item);
    await line.run([noun, "list", "--since", "30m"], { fetch, nowMs });
    expect(asked[0]?.searchParams.get("from")).toBe("2026-11-22T13:35:00.000Z");
  });

  test("of a list that the service orders by time ends it", async () => {
    const old = { ...item, id: other, createdAt: "2026-11-22T13:04:59.999Z" };
    const ran = await line.run(["transaction", "list", "--since", "1h", "--json"], {
      fetch: service(item, old, { ...item, id: "later" }).fetch,
      nowMs,
    });
    expect(ran.json<{ items: object[] }>().items).toEqual([item]);
  });

  test.each([
    ["transaction", "createdAt"],
    ["batch", "closedAt"],
    ["event", "at"],
    ["reversal", "createdAt"],
  ])("of %s includes its own moment, and passes over ids that a switch made", async (noun, field) => {
    const of = (time: string, own: string) => ({ id: own, [field]: `2026-11-22T13:${time}Z` });
    const bySwitch = of("00:00.000", id.replace("-728c", "-428c"));
    const all = [bySwitch, of("05:00.000", id), of("04:59.999", other), of("05:00.001", id)];
    const args = [noun, "list", "--since", "1h", "--json"];
    const ran = await line.run(args, { fetch: service(...all).fetch, nowMs });
    expect(ran.json<{ items: object[] }>().items).toEqual([all[1]]);
  });

  test("that is no time is refused", async () => {
    const { code, stderr } = await line.run(["event", "list", "--since", "yesterday"], { fetch: service().fetch });
    expect([code, stderr]).toEqual([2, expect.stringContaining("30m, 1h or 2d")]);
  });
});

describe("--follow", () => {
  const later = { ...item, id: other, seq: 8, at: "2026-11-22T14:05:01.000Z", createdAt: "2026-11-22T14:05:01.000Z" };

  test.each(["notifications", "event", "transaction", "audit"])(
    "of %s shows what is added, once, and survives a restart of the service",
    async (noun) => {
      const list: object[] = [item];
      let isUp = true;
      const growing: typeof fetch = async () =>
        isUp ? Response.json({ items: list.toReversed(), next: null }) : Response.json({}, { status: 502 });
      const following = line.start([noun, "list", "--follow"], { fetch: growing });
      await following.said(noun === "audit" ? "7" : id);
      isUp = false;
      await following.said("answered 502");
      isUp = true;
      list.push(later);
      await following.said(noun === "audit" ? "8 " : other);
      following.interrupt();
      const { code, stdout } = await following.ended;
      expect(code).toBe(0);
      const [headers, ...rows] = stdout.trimEnd().split("\n");
      expect([headers, rows.length]).toEqual([expect.stringMatching(/^(?:CREATED AT|AT|NUMBER) /), 2]);
      expect(new Set(waits)).toEqual(new Set([2_000]));
    },
  );

  const ago = (seconds: number) => new Date(Date.parse(at) - seconds * 1_000).toISOString();
  /** Answers one reading after the other, and ends with the last. */
  async function followed(args: readonly string[], ...readings: (Record<string, number> | number | "away")[]) {
    const limits: (string | null)[] = [];
    let running: ReturnType<typeof line.start> | undefined;
    const answer: typeof fetch = async (input) => {
      limits.push(new URL(String(input)).searchParams.get("limit"));
      const reading = readings.shift();
      if (readings.length === 0) running?.interrupt();
      if (reading === "away") throw new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } });
      if (typeof reading === "number") return Response.json({ code: "c", detail: "d" }, { status: reading });
      const items = Object.entries(reading ?? {}).map(([tid, age]) => ({
        ...item,
        id: `${id}${tid}`,
        tid,
        createdAt: ago(age),
      }));
      return Response.json({ items, next: null });
    };
    running = line.start(["transaction", "list", "--follow", "--json", ...args], { fetch: answer });
    const { code, stdout } = await running.ended;
    const rows = stdout
      .trimEnd()
      .split("\n")
      .filter((row) => row !== "");
    return { code, shown: rows.map((row) => (JSON.parse(row) as { tid: string }).tid).join(" "), limits };
  }

  test.each([
    ["one that was committed late", [], [{ a: 0 }, { a: 0, b: 9 }, { a: 0, b: 9 }], "a b"],
    ["none that is older than that", [], [{ a: 0 }, { a: 0, b: 11 }], "a"],
    [
      "all that came at once, oldest first",
      ["--limit", "1"],
      [{ a: 5 }, { c: 0, b: 1, a: 5 }, { c: 0, b: 1 }],
      "a b c",
    ],
    ["none that --limit left out at first", ["--limit", "1"], [{ a: 0 }, { a: 0, b: 9 }], "a"],
    ["none from before --since", ["--since", ago(8)], [{ a: 0 }, { a: 0, b: 7, c: 9 }], "a b"],
    [
      "nothing twice, if newer ones leave the list",
      [],
      [{ b: 0, a: 60 }, { b: 0, a: 60 }, { a: 60 }, { a: 60 }],
      "a b",
    ],
    ["the first ones of an empty list", ["--since", ago(8)], [{}, {}, { a: 8 }, { b: 0, a: 8 }], "a b"],
  ] as const)("shows %s", async (_, args, readings, shown) => {
    const ran = await followed(args, ...readings, {});
    expect(ran).toMatchObject({ code: 0, shown });
    const [first, ...later] = ran.limits;
    expect([first, new Set(later)]).toEqual([args[0] === "--limit" ? "1" : "50", new Set(["500"])]);
  });

  const many = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`m${n}`, n + 60]));
  test.each([
    ["one that was made long before the newest", [], [{ a: 0 }, { a: 0, b: 900 }, { a: 0, b: 900 }], "a b"],
    ["one that is in it again", [], [{ b: 0, a: 900 }, { b: 0 }, { b: 0, a: 900 }], "a b a"],
    [
      "none that --limit left out at first",
      ["--limit", "1"],
      [
        { a: 0, b: 900 },
        { a: 0, c: 700, b: 900 },
      ],
      "a c",
    ],
    ["none from before --since", ["--since", ago(800)], [{ a: 0 }, { a: 0, b: 700, c: 900 }], "a b"],
    [
      "none below its newest 500",
      ["--limit", "1"],
      [
        { a: 0, ...many },
        { a: 0, z: 9, ...many, y: 900 },
      ],
      "a z",
    ],
    ["all that came at once", [], [{ a: 900 }, { a: 900, ...many, b: 800 }], "a b m"],
  ] as const)("with --state shows %s", async (_, args, readings, shown) => {
    const ran = await followed(["--state", "ERROR", ...args], ...readings, {});
    expect(ran.shown.replace(/m499 .* m0$/, "m")).toBe(shown);
  });

  test.each([429, 500, 503, "away"] as const)("goes on after %s, unless the list never began", async (trouble) => {
    expect(await followed([], { a: 5 }, trouble, trouble, { b: 0, a: 5 }, {})).toMatchObject({ code: 0, shown: "a b" });
    expect(await followed([], trouble, { a: 0 }, {})).toMatchObject({ code: 3, shown: "" });
  });

  test.each([400, 401, 403, 404])("ends at %d: waiting does not help", async (status) => {
    expect(await followed([], { a: 5 }, status, { b: 0, a: 5 }, {})).toMatchObject({ code: 3, shown: "a" });
  });

  test("with --json writes an object a line", async () => {
    const following = line.start(["event", "list", "--follow", "--json"], { fetch: service(later, item).fetch });
    await following.said(other);
    following.interrupt();
    const { stdout } = await following.ended;
    const rows = stdout.trimEnd().split("\n");
    expect(rows.map((row) => (JSON.parse(row) as { id: string }).id)).toEqual([id, other]);
  });
});

test.each([
  [["top", "--interval", "3"], 3_000],
  [["notifications", "progress", id, "--follow"], 1_000],
])("%j asks again after %d ms", async (args, waited) => {
  let asked = 0;
  let running: ReturnType<typeof line.start> | undefined;
  const answer: typeof fetch = async () => {
    asked += 1;
    if (asked === 3) running?.interrupt();
    return Response.json({ ...overview, held: { paused: 0, order: 0 }, due: 1 });
  };
  running = line.start(args, { fetch: answer, isTerminal: true });
  await running.ended;
  expect(waits.slice(0, 2)).toEqual([waited, waited]);
});

test("top goes on through a restart of the service, unless it never began", async () => {
  let asked = 0;
  let running: ReturnType<typeof line.start> | undefined;
  const answer: typeof fetch = async () => {
    asked += 1;
    if (asked === 3) running?.interrupt();
    return asked === 2 ? Response.json({}, { status: 502 }) : Response.json(overview);
  };
  running = line.start(["top"], { fetch: answer, isTerminal: true });
  const { code, stderr } = await running.ended;
  expect([code, asked, stderr]).toEqual([0, 3, expect.stringContaining("answered 502")]);
  const away: typeof fetch = async () => Response.json({}, { status: 502 });
  expect((await line.run(["top"], { fetch: away, isTerminal: true })).code).toBe(3);
});

test("TAB completes names, or the id if a shell would read more than letters, or several have the name", async () => {
  const hostile = "$(touch x)\n`touch y`";
  const named = (partnerId: string, name: string) => ({ id: partnerId, settings: { name } });
  const partners = [named("1", "Corner"), named("2", hostile), named("3", "Twin"), named("4", "Twin")];
  const { stdout } = await line.run(["complete", "--", "partner", "show", ""], { fetch: service(...partners).fetch });
  expect(stdout).toBe("Corner\t1\n2\t$(touch x) `touch y`\n3\tTwin\n4\tTwin\n");
  const refused: typeof fetch = async () => Response.json({}, { status: 503 });
  const without = await line.run(["complete", "--", "partner", "show", ""], { fetch: refused });
  expect([without.code, without.stdout, without.stderr]).toEqual([0, "", ""]);
});

describe("a name in place of an id", () => {
  const partners = [
    { ...item, settings: { name: "Corner Shop" } },
    { ...item, id: other, settings: { name: "Twin" } },
    { ...item, id: "01a1fc40-577c-728c-bd54-142edc79a521", settings: { name: "Twin" } },
  ];

  test.each([
    ["partner", "show", "corner shop"],
    ["partner", "statistics", "Corner Shop"],
    ["terminal", "list", "--partner", "Corner Shop"],
    ["api-key", "list", "--partner", "Corner Shop"],
    ["terminal", "release", "T0000001", "--partner", "Corner Shop", "--yes"],
  ])("%j asks about that partner", async (...args) => {
    const { asked, fetch } = service(...partners);
    await line.run(args, { fetch });
    expect(asked.at(-1)?.pathname).toContain(`/operator/v1/partners/${id}`);
  });

  test.each(["notifications", "event", "transaction", "endpoint"])("%s list filters by it", async (noun) => {
    const { asked, fetch } = service(...partners);
    await line.run([noun, "list", "--partner", "Corner Shop"], { fetch });
    expect(asked.at(-1)?.searchParams.get("partner")).toBe(id);
  });

  test("that several partners have is refused with the candidates", async () => {
    const { code, stderr } = await line.run(["partner", "pause", "twin"], { fetch: service(...partners).fetch });
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /2 have the name "twin".*\n {2}\S+520 {2}Twin\n {2}\S+521 {2}Twin\n.*`paybell partner list`/,
    );
  });

  test.each([
    ["twin", 1],
    ["Twin", 0],
    [id.toUpperCase(), 0],
    ["TWIN", undefined],
  ])("%s is the one of these very letters, or an id, before one in other letters", async (text, at) => {
    const named = [
      { id, names: ["Twin"] },
      { id: other, names: ["twin", id] },
    ];
    const found = () => meant(named, text, "partner", "paybell partner list");
    if (at === undefined) expect(found).toThrow("2 have the name");
    else expect(found()).toBe(named[at]);
  });

  test("that no partner has is refused", async () => {
    const { code, stderr } = await line.run(["event", "list", "--partner", "x"], { fetch: service(...partners).fetch });
    expect([code, stderr]).toEqual([2, expect.stringMatching(/no partner "x".\n.*`paybell partner list`/)]);
  });

  test("is that of an operator whose token is valid, and not of others before", async () => {
    const { asked, fetch } = service({ ...item, id: other, revokedAt: at }, item);
    await line.run(["operator", "revoke", "first", "--yes"], { fetch });
    expect(asked.at(-1)?.pathname).toBe(`/operator/v1/operators/${id}/revoke`);
    const again = await line.run(["operator", "revoke", other, "--yes"], { fetch });
    expect([again.code, again.stdout]).toEqual([1, "The token of first was revoked already.\n"]);
  });

  test("is that of a terminal's merchant", async () => {
    const { asked, fetch } = service(item);
    await line.run(["terminal", "release", "shop", "--partner", id, "--yes"], { fetch });
    expect(asked.at(-1)?.pathname).toBe(`/operator/v1/partners/${id}/terminals/T0000001`);
  });
});
