import { afterAll, describe, expect, test } from "vitest";
import { CommandLine } from "./command-line.ts";

const id = "01a1fc40-577c-728c-bd54-142edc79a51f";
const inFlight = { partnerId: id, transactionId: id, command: "SALE", reqId: null, createdAt: "2026-11-22" };
const operator = { id, name: "Ada", role: "admin", expiresAt: "2027-01-01", lastUsedAt: null, revokedAt: null };
const restore = {
  name: "r",
  endsAt: null,
  heldAt: "",
  held: 957,
  releasedAt: null,
  partners: [],
  commands: [inFlight],
};

const key = { id, kind: "apiKey", name: "till", expiresAt: null, lastUsedAt: null };
const proposal = { id, action: "rotateKey", partnerId: id, input: {}, proposedBy: "Ada", expiresAt: "2027-01-01" };

const line = new CommandLine({
  PAYBELL_URL: "http://127.0.0.1:1",
  PAYBELL_OPERATOR_TOKEN: "operator-token-of-the-tests",
});
afterAll(() => line.remove());

const held = { paused: 0, order: 0 };

/** A service that answers what the commands ask, and records what would change something. */
function recorded() {
  const changes: string[] = [];
  const answer: typeof fetch = async (input, { method = "GET", body } = {}) => {
    const { pathname } = new URL(String(input));
    const isCount = typeof body === "string" && body.includes('"dryRun":true');
    if (method !== "GET" && !isCount) changes.push(`${method} ${pathname}`);
    const record = { id, tid: "T0000001", tries: 4, keys: [key], matched: 957, redelivered: 957, held, name: "first" };
    if (pathname.endsWith("/proposals")) return Response.json({ items: [proposal] });
    return Response.json(
      pathname.endsWith("/restore") || pathname.endsWith("/release")
        ? { restore }
        : /\/(operators|partners)$/.test(pathname)
          ? { items: [operator], next: null }
          : record,
    );
  };
  return { changes, fetch: answer };
}

const partner = ["--partner", id];
const reason = ["--reason", "the bank says so"];

describe.each([
  [["restore", "release"], "957 held notifications of 1 partner are sent. 1 command in flight end as ERROR 96"],
  [["notifications", "redeliver", "--state", "parked", ...partner], "957 notifications of 1 partner are sent"],
  [["partner", "archive", id, "--out", "all.jsonl"], "is deleted"],
  [["partner", "rotate", "apiKey", "--overlap-hours", "0", ...partner], "The present apiKey is not valid any more"],
  [["api-key", "revoke", "till", ...partner], "(never used), is refused from then on"],
  [["operator", "revoke", id], "The token of Ada (until 2027-01-01, never used) is refused"],
  [["settlement", "abort", id, ...reason], "tid T0000001, state , tries 4"],
  [["reversal", "resolve", id, ...reason], "The reversal is resolved"],
  [["reversal", "stands", id, ...reason], "The reversal is over for good, and its transaction stands"],
  [["reversal", "retry", id], "The reversal is due again"],
  [["acquirer", "remove", "first"], "The acquirer first is removed"],
  [["terminal", "release", "T0000001", ...partner], "The terminal T0000001 loses its merchant"],
  [["clearing", "resolve", id, ...reason], "The exception is resolved, and cannot be opened again"],
  [["proposal", "confirm", id], "Ada proposed: rotateKey"],
  [["audit", "rotate-key"], "continue the audit no more"],
])("paybell %j", (args, effect) => {
  test("changes nothing without a terminal and without --yes, and ends with 2", async () => {
    const { changes, fetch } = recorded();
    const ran = await line.run(args, { stdin: "y\n", fetch });
    expect([ran.code, changes]).toEqual([2, []]);
    expect(ran.stderr).toContain(effect);
    expect(ran.stderr).toMatch(/Nothing was changed\.\n.*--yes/);
  });
});

test("at a terminal the effect is shown in numbers, and only a yes lets it happen", async () => {
  for (const [typed, code] of Object.entries({ "": 2, n: 2, yesterday: 2, Y: 0, yes: 0 })) {
    const { changes, fetch } = recorded();
    const running = line.start(["restore", "release"], { fetch });
    await running.said("957 held notifications of 1 partner");
    running.type(typed);
    expect((await running.ended).code).toBe(code);
    expect(changes).toEqual(code === 0 ? ["POST /operator/v1/redeliveries", "POST /operator/v1/restore/release"] : []);
  }
});

test.each([
  [partner, "POST /operator/v1/redeliveries"],
  [["--commands"], "POST /operator/v1/restore/release"],
])("a release with %j does this alone", async (only, change) => {
  const { changes, fetch } = recorded();
  expect((await line.run(["restore", "release", ...only, "--yes"], { fetch })).code).toBe(0);
  expect(changes).toEqual([change]);
});

test("a release that finds nothing says so, and ends with 1", async () => {
  const nothing: typeof fetch = async () => Response.json({ restore: null, items: [], next: null });
  const ran = await line.run(["restore", "release", "--yes"], { fetch: nothing });
  expect([ran.code, ran.stdout]).toEqual([1, "There is nothing to release.\n"]);
});
