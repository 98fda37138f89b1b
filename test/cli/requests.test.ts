import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { CommandLine } from "./command-line.ts";

/** What was given to the programs of the service's package, which do nothing here and end with 1. */
const began: [name: string, ...given: unknown[]][] = [];
vi.mock("@paybell/server", () => {
  const names = "Serve Sandbox Check Migrate Backup Verify Restore RestoreHold MasterKeyNew MasterKeyRotate AlertsTest";
  const others = "AuditVerify AuditRotateKey AuditExport AcquirerTest";
  const program = (name: string) => [
    `run${name}`,
    async (_: unknown, ...given: unknown[]) => {
      began.push([name, ...given]);
      return 1;
    },
  ];
  return Object.fromEntries(`${names} ${others}`.split(" ").map(program));
});

const id = "01a1fc40-577c-728c-bd54-142edc79a51f";
const nowMs = () => Date.parse("2026-11-25T12:00:00.000Z");
const line = new CommandLine({
  PAYBELL_URL: "https://paybell.example",
  PAYBELL_OPERATOR_TOKEN: "operator-token",
  PAYBELL_API_KEY: "pb_key",
});
afterAll(() => line.remove());

const ended = { id, kind: "apiKey", name: "ended", expiresAt: "2026-11-25T12:00:00.000Z", lastUsedAt: null };
const valid = { ...ended, name: "valid", expiresAt: "2026-11-25T12:00:00.001Z" };
const answer = {
  ...{ id, partnerId: id, kind: "apiKey", secret: "pb_new", activeFrom: "A", expiresOld: "B", state: "open" },
  ...{ name: "n", tid: "T0000001", mid: "M", acquirer: "", minutes: 0, matched: 2, redelivered: 2, target: "t" },
  ...{ held: { paused: 0, order: 0 }, keys: [ended, valid, { ...valid, kind: "signingKey", name: "no API key" }] },
  ...{ settings: { name: "n", callBackUrl: null }, items: [], next: null, subject: {}, attempts: [] },
  ...{ command: "SALE", batchNo: "", points: [] },
  createdAt: "2026-11-25T11:00:00.000Z",
};

/** Runs a command on a service that answers everything, and returns its requests. */
async function requestsOf(args: readonly string[], env: Readonly<Record<string, string>> = {}, change: object = {}) {
  const requests: [method: string, url: string, body?: unknown][] = [];
  const given: RequestInit[] = [];
  const serve: typeof fetch = async (input, init = {}) => {
    const { pathname, search } = new URL(String(input));
    const body = typeof init.body === "string" ? [JSON.parse(init.body) as unknown] : [];
    requests.push([init.method ?? "GET", decodeURIComponent(pathname + search), ...body] as (typeof requests)[number]);
    given.push(init);
    return Response.json(pathname.endsWith("/acquirers") ? { items: [] } : { ...answer, ...change });
  };
  const ran = await line.run(args, { env, fetch: serve, nowMs });
  return { ...ran, requests, given };
}

const operator = "/operator/v1";
const partner = `${operator}/partners/${id}`;
const of = ["--partner", id];
const reason = ["--reason", "the bank says so"];
const from = "2026-11-25T11:00:00.000Z";
const to = "2026-11-25T11:30:00.000Z";
const between = ["--since", "1h", "--until", "30m"];
const times = `from=${from}&to=${to}`;
for (const name of ["profile", "ca", "certificate", "key", "mac", "kek"]) line.write(name, `"${name}"\n`);
const files = ["--profile", "profile", "--ca", "ca", "--certificate", "certificate", "--key", "key"];

test.each<[args: string[], method: string, url: string, body?: unknown]>([
  [["notifications", "redeliver", id], "POST", `${operator}/notifications/${id}/redeliver`, { to: "original" }],
  [
    ["notifications", "redeliver", id, "--registered"],
    ...(["POST", `${operator}/notifications/${id}/redeliver`, { to: "registered" }] as const),
  ],
  [
    ["notifications", "redeliver", "--state", "accepted", "--registered", "--yes", ...between, ...of],
    ...(["POST", `${operator}/redeliveries`] as const),
    { filter: { state: "accepted", partner: id, from, to }, to: "registered" },
  ],
  [
    ["notifications", "list", "--state", "parked", "--reason", "tls", "--q", "o-1", "--limit", "7", ...between, ...of],
    ...(["GET", `${operator}/notifications?partner=${id}&state=parked&reason=tls&q=o-1&${times}&limit=7`] as const),
  ],
  ...(["batch", "settlement", "reversal"] as const).map((noun, at): [string[], string, string] => {
    const [plural, state] = [`${noun}${noun === "batch" ? "e" : ""}s`, ["CLOSED", "waiting", "PARKED"][at] ?? ""];
    return [
      [noun, "list", "--state", state, ...of],
      "GET",
      `${operator}/${plural}?partner=${id}&state=${state}&limit=50`,
    ];
  }),
  [["event", "list", "--state", "parked", ...of], "GET", `${operator}/events?partner=${id}&state=parked&limit=50`],
  [["endpoint", "list", "--state", "open", ...of], "GET", `${operator}/endpoints?partner=${id}&state=open&limit=500`],
  [
    ["notifications", "list", "--as", "partner", "--q", "o-1", "--state", "parked"],
    ...(["GET", "/v1/notifications/search?state=parked&q=o-1&limit=50"] as const),
  ],
  [
    ["notifications", "redeliver", "--as", "partner", "--state", "parked", "--reason", "tls", "--yes"],
    ...(["POST", "/v1/redeliveries", { filter: { state: "parked", reason: "tls" }, to: "original" }] as const),
  ],
  [
    ["notifications", "redeliver", id, "--as", "partner"],
    ...(["POST", `/v1/notifications/${id}/redeliver`, { to: "original" }] as const),
  ],
  [["partner", "statistics", id, "--span", "week"], "GET", `${partner}/figures?span=week`],
  [
    ["history", "export", "--day", "2026-11-21", "--format", "csv", "--out", "day.csv", ...of],
    ...(["GET", `${operator}/history/2026-11-21?format=csv&partner=${id}`] as const),
  ],
  [
    ["clearing", "send", "./profile", "--acquirer", "first"],
    ...(["POST", `${operator}/clearing-files?acquirer=first&name=profile`] as const),
  ],
  [
    ["endpoint", "change", "https://a.example/", "--command", "VOID"],
    ...(["PUT", "/v1/callback-url", { callBackUrl: "https://a.example/", command: "VOID" }] as const),
  ],
  [
    ["endpoint", "change", "--command", "VOID", "--remove"],
    ...(["PUT", "/v1/callback-url", { callBackUrl: null, command: "VOID" }] as const),
  ],
  [["notifications", "show", id, "--json"], "GET", `/v1/notifications/${id}/sealed`],
  [
    ["audit", "list", "--actor", "Ada", "--subject", "s", "--action", "rotateKey", ...between],
    ...(["GET", `${operator}/audit?actor=Ada&subject=s&action=rotateKey&${times}&limit=50`] as const),
  ],
  [
    ["transaction", "list", "--state", "success", "--acquirer", "first", ...of],
    ...(["GET", `${operator}/transactions?partner=${id}&state=SUCCESS&acquirer=first&limit=50`] as const),
  ],
  [
    ["clearing", "exceptions", "--acquirer", "first", "--state", "open"],
    ...(["GET", `${operator}/clearing-exceptions?acquirer=first&state=open&limit=50`] as const),
  ],
  [["clearing", "files", "--acquirer", "first"], "GET", `${operator}/clearing-files?acquirer=first&limit=50`],
  [["clearing", "resolve", id, "--yes", ...reason], "POST", `${operator}/clearing-exceptions/${id}/resolve`, why()],
  [
    ["statement", "batches", "--tid", "T1", "--from", "2026-11-01", "--to", "2d"],
    ...(["GET", "/v1/batches?tid=T1&from=2026-11-01&to=2026-11-23T12:00:00.000Z&limit=50"] as const),
  ],
  [["statement", "settlements", "--tid", "T1"], "GET", "/v1/settlements?tid=T1&limit=50"],
  ...(["retry", "resolve", "stands"] as const).map((name): [string[], string, string, unknown] => [
    ["reversal", name, id, "--yes", ...reason],
    ...(["POST", `${operator}/reversals/${id}/${name}`, why()] as const),
  ]),
  ...(["abort", "resolve"] as const).map((name): [string[], string, string, unknown] => [
    ["settlement", name, id, "--yes", ...reason],
    ...(["POST", `${operator}/settlements/${id}/${name}`, why()] as const),
  ]),
  [
    [
      ...["terminal", "set", "T0000001", "--mid", "M", "--merchant-id", "I", "--merchant-name", "N"],
      ...["--merchant-address", "A", "--device-id", "D", "--app-name", "P", "--acquirer", "first", ...of],
    ],
    ...(["PUT", `${partner}/terminals/T0000001`] as const),
    {
      ...{ mid: "M", merchantId: "I", merchantName: "N", merchantAddress: "A", deviceId: "D", appName: "P" },
      acquirer: "first",
    },
  ],
  [
    ["partner", "rotate", "apiKey", ...of],
    ...(["POST", `${partner}/keys/rotate`, { key: "apiKey", overlapHours: 24 }] as const),
  ],
  [
    ["partner", "rotate", "signingKey", "--overlap-hours", "0.5", ...of],
    ...(["POST", `${partner}/keys/rotate`, { key: "signingKey", overlapHours: 0.5 }] as const),
  ],
  [
    ["api-key", "add", "till", "--scopes", "read", "pull", "--expires-in-days", "5", ...of],
    ...(["POST", `${partner}/api-keys`, { name: "till", scopes: ["read", "pull"], expiresInDays: 5 }] as const),
  ],
  [["api-key", "revoke", "valid", "--yes", ...of], "POST", `${partner}/api-keys/${id}/revoke`, {}],
  [
    ["operator", "add", "Ada", "--expires-in-days", "5"],
    ...(["POST", `${operator}/operators`, { name: "Ada", role: "viewer", expiresInDays: 5 }] as const),
  ],
  [["proposal", "rule", "--minutes", "60"], "PUT", `${operator}/two-admin-rule`, { minutes: 60 }],
  [
    ["acquirer", "add", "first", "--hosts", "a:1, b:2", "--mac-key", "mac", "--key-encryption-key", "kek", ...files],
    ...(["PUT", `${operator}/acquirers/first`] as const),
    {
      ...{ profile: "profile", hosts: ["a:1", "b:2"], ca: '"ca"\n', certificate: '"certificate"\n', key: '"key"\n' },
      ...{ macKey: '"mac"', keyEncryptionKey: '"kek"' },
    },
  ],
])("paybell %j asks for what it says", async (args, ...request) => {
  const { code, stderr, requests } = await requestsOf(args);
  expect(code, stderr).toBe(0);
  expect(requests.at(-1)).toEqual(request);
});

function why() {
  return { reason: "the bank says so" };
}

test.each<[args: string[], change: object, code: number, said: string, posts: number]>([
  [["notifications", "redeliver", "--state", "parked", "--yes", ...of], { matched: 0 }, 1, "Nothing matches.", 1],
  [["notifications", "redeliver", "--state", "parked", "--dry-run", ...of], {}, 0, "2 of 1 partner match", 1],
  [["notifications", "redeliver", id], { held: "paused" }, 0, "it waits, because its partner is paused", 1],
  [["notifications", "redeliver", id], { held: "order" }, 0, "it waits for an earlier one of its chain", 1],
  [["clearing", "resolve", id, "--yes", ...reason], { state: "resolved" }, 1, "is resolved already", 0],
  [["proposal", "rule", "--minutes", "0"], {}, 1, "One admin is enough, as before.", 1],
  [["proposal", "rule"], {}, 0, "One admin is enough.", 0],
  [["trigger", "sale", "--anywhere"], { status: "ERROR", notification: null }, 1, "ERROR", 1],
  [["trigger", "decline", "--anywhere"], { status: "ERROR", notification: null }, 0, "ERROR", 1],
  [["trigger", "decline", "--anywhere"], { status: "SUCCESS", notification: null }, 1, "SUCCESS", 1],
  [["notifications", "show", id], { state: "accepted" }, 0, "accepted at", 0],
  [["notifications", "show", id], { state: "parked" }, 1, "parked after", 0],
])("paybell %j with %j ends with %d", async (args, change, code, said, posts) => {
  const ran = await requestsOf(args, {}, change);
  expect([ran.code, ran.stdout], ran.stderr).toEqual([code, expect.stringContaining(said)]);
  expect(ran.requests.filter(([method]) => method !== "GET")).toHaveLength(posts);
});

test.each([
  ["notifications", "redeliver", id, "another"],
  ["statement", "day", "2026-11-21", "--csv"],
  ["clearing", "send", "profile", "--acquirer", "first"],
  ["history", "export", "--day", "2026-11-21", "--out", "refused.jsonl"],
])("paybell %j ends with 3 if the service is unavailable, and asks no more", async (...args) => {
  let asked = 0;
  const refuse: typeof fetch = async () => {
    asked += 1;
    return Response.json({ code: "unavailable", detail: "It stops." }, { status: 503 });
  };
  const ran = await line.run(args, { fetch: refuse });
  expect(ran).toMatchObject({ code: 3, stdout: "", stderr: expect.stringContaining("It stops.") });
  expect(asked).toBe(1);
});

const proposed = { action: "addOperator", partnerId: null, input: {}, proposedBy: "Ada", expiresAt: "A" };

test.each<[args: string[], made: object, secret: string]>([
  [["partner", "rotate", "signingKey", ...of], { kind: "signingKey" }, "pb_new"],
  [["api-key", "add", "till", "--scopes", "read", ...of], { secret: undefined, apiKey: "pb_added" }, "pb_added"],
  [["operator", "add", "Ada"], { secret: undefined, token: "pbo_added" }, "pbo_added"],
  [
    ["proposal", "confirm", id, "--yes"],
    { secret: undefined, token: "pbo_added", items: [{ id, ...proposed }] },
    "pbo_added",
  ],
  [["partner", "add", "--name", "n"], { secret: undefined, apiKey: "pb_added" }, "pb_added"],
  [["keys", "generate"], {}, "whsec_"],
])("paybell %j --out has its secret in the file only, also with --json", async (args, made, secret) => {
  for (const [at, form] of [[], ["--json"]].entries()) {
    const out = `${args.slice(0, 2).join("-")}-${at}.json`;
    const { code, stdout, stderr } = await requestsOf([...args, "--out", out, ...form], {}, made);
    expect(code, stderr).toBe(0);
    expect(stdout).toContain(out);
    expect(stdout + stderr).not.toMatch(/pb_|pbo_|whsec_/);
    const path = join(line.folder, out);
    expect([readFileSync(path, "utf8").includes(secret), statSync(path).mode & 0o777]).toEqual([true, 0o600]);
  }
});

const paid = {
  ...{ amount: "5", currency: "USD", tid: "T1", mid: "M1", merchantTransId: "m", callBackUrl: "https://a.example/" },
  card: { number: "411111******1111", swipeType: "C", aid: "A0000000031010", token: "tok_approve" },
};
const { tid, mid, callBackUrl } = paid;
const sold = { command: "SALE", ...paid };
const ofSale = { transactionId: id, callBackUrl };

test.each<[what: string, bodies: object[]]>([
  ["sale", [sold]],
  ["decline", [{ ...sold, card: { ...paid.card, token: "tok_decline_51" } }]],
  ["void", [sold, { command: "VOID", ...ofSale }]],
  [
    "preauth-complete",
    [
      { ...sold, command: "PREAUTH" },
      { command: "PREAUTH_COMPLETE", ...ofSale, amount: "5" },
    ],
  ],
  ["settlement", [sold, sold, { command: "VOID", ...ofSale }, { command: "SETTLEMENT", tid, mid, callBackUrl }]],
  ["reversal", [sold, { command: "REVERSAL", transactionId: id }]],
  ["logon", [{ command: "LOGON", tid, mid }]],
])(
  "trigger %s runs these commands, each with the values of its options and a reqId of its own",
  async (what, bodies) => {
    const money = ["--amount", "5", "--currency", "USD", "--tid", "T1", "--mid", "M1", "--merchant-trans-id", "m"];
    const args = ["trigger", what, "--anywhere", "--code", "51", "--call-back-url", callBackUrl, ...money];
    const { requests } = await requestsOf(args, {}, { status: "SUCCESS", notification: null });
    const sent = requests.map(([, , body]) => body as { reqId: string });
    expect(sent).toEqual(bodies.map((body) => ({ ...body, reqId: expect.any(String) })));
    expect(new Set(sent.map(({ reqId }) => reqId)).size).toBe(bodies.length);
  },
);

test.each([
  ["csv", "header\none\ntwo\n"],
  ["json-lines", "one\ntwo\n"],
])("an export as %s says how many notifications it has", async (format, text) => {
  const out = `export.${format}`;
  const args = ["history", "export", "--day", "2026-11-21", "--format", format, "--out", out];
  const { stdout } = await line.run(args, { fetch: async () => new Response(text) });
  expect(stdout).toBe(`Wrote 2 notifications of 2026-11-21 to ${out}.\n`);
  expect(readFileSync(join(line.folder, out), "utf8")).toBe(text);
});

test("the file of a new partner has all that opens its IPNs", async () => {
  const made = { apiKey: "pb_added", encryptionKey: "e", signingKey: "s", webhookSecret: "w" };
  const serve: typeof fetch = async () => Response.json({ id, ...made });
  const settings = ["--cipher", "aes-256-cbc", "--encoding", "hex", "--signing", "whole", "--wire-names", "sample"];
  const args = ["partner", "add", "--name", "n", "--fields", "extended", ...settings, "--json"];
  expect((await line.run(args, { fetch: serve })).json()).toEqual({
    ...{ baseUrl: "https://paybell.example", partnerId: id, ...made },
    ...{
      cipher: "aes-256-cbc",
      encoding: "hex",
      signing: { mode: "whole" },
      fields: ["extended"],
      wireNames: "sample",
    },
  });
});

test("the file of a key that an operator makes has no URL, which may be the operators' own", async () => {
  const made = { secret: undefined, apiKey: "pb_added" };
  await requestsOf(["api-key", "add", "till", "--scopes", "read", "--out", "till.json", ...of], {}, made);
  const written = JSON.parse(readFileSync(join(line.folder, "till.json"), "utf8")) as object;
  expect(written).toEqual({ partnerId: id, apiKeyId: id, apiKey: "pb_added" });
});

test("each key that is generated is another one, of 32 bytes", async () => {
  const { stdout } = await line.run(["keys", "generate"]);
  const keys = [...stdout.matchAll(/^PAYBELL_(\w+)=(?:whsec_)?(\S+)$/gm)].map(([, name, key = ""]) => [name, key]);
  expect(keys.map(([name]) => name)).toEqual(["ENCRYPTION_KEY", "SIGNING_KEY", "WEBHOOK_SECRET"]);
  expect(new Set(keys.map(([, key]) => key)).size).toBe(3);
  for (const [, key = ""] of keys) expect(Buffer.from(key, "base64")).toHaveLength(32);
});

test.each([
  ["partner", "show"],
  ["partner", "statistics"],
  ["terminal", "list", "--partner"],
  ["api-key", "list", "--partner"],
])("paybell %s %s %s of a partner that is named takes an operator's token", async (...args) => {
  const { code, stderr, requests } = await requestsOf([...args, id], { PAYBELL_OPERATOR_TOKEN: "" });
  expect([code, stderr, requests]).toEqual([2, expect.stringContaining("there is no operator token"), []]);
});

test.each([
  // 0 would end the key at once.
  ...["", " ", "-1", "x", "1e9"].map((hours) => [
    "partner",
    "rotate",
    "apiKey",
    "--overlap-hours",
    hours,
    "--yes",
    ...of,
  ]),
  ["endpoint", "change", "https://a.example/", "--command", "VOID", "--remove"],
  ["endpoint", "change", "--remove"],
  ["endpoint", "change", "--command", "VOID"],
  ["notifications", "redeliver", id, "--dry-run"],
  ["notifications", "redeliver", id, "--wait"],
  ["notifications", "redeliver", "--state", "accepted", "--until", "1h", "--yes", ...of],
  ["reversal", "stands", id, "--yes"],
  ["clearing", "resolve", id, "--yes"],
  ["acquirer", "update", "first"],
  ["audit", "verify", "--expect", "12"],
  ["statement", "day", "2026-02-30"],
  ["operator", "add", "Ada", "--expires-in-days", "367"],
])("paybell %j is refused with 2, and changes nothing", async (...args) => {
  const { code, requests } = await requestsOf(args);
  expect([code, requests.filter(([method]) => method !== "GET")]).toEqual([2, []]);
});

test("status counts partners by their state, and lists the keys that end within the days, the first first", async () => {
  const ends = (kind: string, expiresAt: string | null) => ({ id, kind, expiresAt });
  const keys = [
    ...[ends("last", "2026-11-26T12:00:00.000Z"), ends("later", "2026-11-26T12:00:00.001Z"), ends("never", null)],
    ...[ends("ended", "2026-11-25T12:00:00.000Z"), ends("next", "2026-11-25T12:00:00.001Z")],
  ];
  const partners = ["active", "paused", "disabled", "disabled"].map((state) => ({
    id,
    state,
    settings: { name: state },
    keys: state === "active" ? keys : [],
  }));
  const overview = { trouble: [], parked: [], pending: 3, oldestPendingAt: null, standing: { parked: 2 } };
  const serve: typeof fetch = async (input) => {
    const { pathname, searchParams } = new URL(String(input));
    if (pathname.endsWith("/endpoints"))
      return Response.json({ items: [{ target: "t", state: searchParams.get("state") }], next: null });
    if (pathname.endsWith("/partners")) return Response.json({ items: partners, next: null });
    return Response.json(pathname === "/readyz" ? { ready: true, checks: {} } : overview);
  };
  const ran = await line.run(["status", "--keys-within", "1", "--json"], { fetch: serve, nowMs });
  const {
    partners: counts,
    keysEnding,
    endpoints,
    backlog,
  } = ran.json<{ partners: object; backlog: object; keysEnding: { kind: string }[]; endpoints: object[] }>();
  expect([counts, backlog]).toEqual([
    { total: 4, paused: 1, disabled: 2 },
    { pending: 3, parked: 2, oldestPendingSeconds: 0 },
  ]);
  expect(keysEnding.map(({ kind }) => kind)).toEqual(["next", "last"]);
  expect(endpoints).toMatchObject([{ state: "open" }, { state: "gone" }]);
});

const json = false;
const head = `12:${"ab".repeat(32)}`;

test.each<[args: string[], name: string, ...given: unknown[]]>([
  [["serve"], "Serve", "all"],
  [["serve", "--role", "delivery"], "Serve", "delivery"],
  [["sandbox"], "Sandbox"],
  [["check", "--json"], "Check", { json: true }],
  [["migrate"], "Migrate", { json }],
  [["alerts", "test"], "AlertsTest", { json }],
  [["master-key", "new"], "MasterKeyNew"],
  [["master-key", "rotate"], "MasterKeyRotate", { json }],
  [["backup", "/b"], "Backup", { folder: "/b", json }],
  [["verify", "/b", "--wal", "/w"], "Verify", { backup: "/b", wal: "/w", json }],
  [
    ["restore", "/b", "--into", "/i", "--wal", "/w", "--to", "1h"],
    ...(["Restore", { backup: "/b", into: "/i", wal: "/w", to: from, json }] as const),
  ],
  [["restore", "hold"], "RestoreHold", { json }],
  [["audit", "verify", "--expect", head], "AuditVerify", { json, expect: { seq: 12, hash: "ab".repeat(32) } }],
  [["audit", "rotate-key", "--yes"], "AuditRotateKey", { json }],
  [["audit", "export"], "AuditExport", { format: "json-lines", after: 0, follow: false }],
  [
    ["audit", "export", "--format", "syslog", "--after", "1200", "--follow"],
    ...(["AuditExport", { format: "syslog", after: 1_200, follow: true }] as const),
  ],
  [
    ["acquirer", "test", "first", "--mid", "M", "--tid", "T", "--token", "t", "--amount", "1", "--batch", "000002"],
    "AcquirerTest",
    {
      ...{ name: "first", mid: "M", tid: "T", token: "t", amount: "1", currency: "VND" },
      batch: "000002",
      trace: "1",
      json,
    },
  ],
])("paybell %j begins what it says, and ends with its code", async (args, ...program) => {
  began.splice(0);
  const { code, stderr } = await line.run(args, { nowMs });
  expect([code, stderr, began]).toEqual([1, "", [program]]);
});

test("a request waits longer than a command does for its acquirer, and its key follows no redirection", async () => {
  const limit = vi.spyOn(AbortSignal, "timeout");
  const { given } = await requestsOf(["partner", "show", id]);
  expect(given).toMatchObject([{ redirect: "manual", headers: { authorization: "Bearer operator-token" } }]);
  expect(limit.mock.calls).toEqual([[90_000]]);
  limit.mockRestore();
});

test("with both an operator token and an API key a command is the operator's", async () => {
  line.write("both.json", { id });
  for (const [command, path] of [
    [["partner", "show"], partner],
    [["partner", "statistics"], `${partner}/figures?span=hour`],
    [["api-key", "list"], partner],
  ] as const) {
    const { requests } = await requestsOf([...command, "--credentials", "both.json"]);
    expect(requests).toEqual([["GET", path]]);
  }
});

test("the API keys that are listed, and can be revoked, are those that are valid now", async () => {
  const { stdout } = await requestsOf(["api-key", "list", ...of]);
  expect(stdout).toContain("valid");
  expect(stdout).not.toMatch(/never used, ends 2026-11-25T12:00:00.000Z|no API key/);
  expect((await requestsOf(["api-key", "revoke", "ended", "--yes", ...of])).code).toBe(2);
});

test("a rotated API key is written as credentials, which replace the older ones", async () => {
  const rotated = await requestsOf(["partner", "rotate", "apiKey", ...of, "--out", "rotated.json"]);
  expect(rotated.stdout).not.toContain("pb_new");
  const written = JSON.parse(readFileSync(join(line.folder, "rotated.json"), "utf8")) as object;
  expect(written).toMatchObject({ apiKey: "pb_new", activeFrom: "A", expiresOld: "B" });
  line.write("older.json", { id, kind: "apiKey", secret: "pb_new" });
  for (const file of ["rotated.json", "older.json"]) {
    const args = ["statement", "batches", "--credentials", file];
    const { given } = await requestsOf(args, { PAYBELL_API_KEY: "" });
    expect(given).toMatchObject([{ headers: { authorization: "Bearer pb_new" } }]);
  }
});

test.each(["not_found", "content_changed"])(
  "show leaves out a sealed body that the service refuses as %s",
  async (code) => {
    const refused = Response.json({ code, title: "t", detail: "d" }, { status: 409 });
    const serve: typeof fetch = async (url) => (String(url).endsWith("/sealed") ? refused : Response.json(answer));
    const shown = await line.run(["notifications", "show", id, "--json"], { fetch: serve, nowMs });
    expect([shown.code, JSON.parse(shown.stdout)]).toEqual([0, answer]);
  },
);

test("an archive over a file that is there reads and deletes nothing", async () => {
  line.write("there.jsonl", "another partner's\n");
  const { code, stderr, requests } = await requestsOf(["partner", "archive", id, "--out", "there.jsonl", "--yes"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("there.jsonl exists already")]);
  expect(requests).toEqual([]);
  expect(readFileSync(join(line.folder, "there.jsonl"), "utf8")).toBe("another partner's\n");
});
