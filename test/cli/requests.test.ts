import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { CommandLine } from "./command-line.ts";

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
  createdAt: "2026-11-25T11:00:00.000Z",
};

/** Runs a command on a service that answers everything, and returns its requests. */
async function requestsOf(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const requests: [method: string, url: string, body?: unknown][] = [];
  const given: RequestInit[] = [];
  const serve: typeof fetch = async (input, init = {}) => {
    const { pathname, search } = new URL(String(input));
    const body = typeof init.body === "string" ? [JSON.parse(init.body) as unknown] : [];
    requests.push([init.method ?? "GET", decodeURIComponent(pathname + search), ...body] as (typeof requests)[number]);
    given.push(init);
    return Response.json(pathname.endsWith("/acquirers") ? { items: [] } : answer);
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

test("a request waits longer than a command does for its acquirer, and its key follows no redirection", async () => {
  const limit = vi.spyOn(AbortSignal, "timeout");
  const { given } = await requestsOf(["partner", "show", id]);
  expect(given).toMatchObject([{ redirect: "manual", headers: { authorization: "Bearer operator-token" } }]);
  expect(limit.mock.calls).toEqual([[90_000]]);
  limit.mockRestore();
});

test("with both an operator token and an API key a command is the operator's", async () => {
  line.write("both.json", { partnerId: id });
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
