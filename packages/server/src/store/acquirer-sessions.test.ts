import { expect, test, vi } from "vitest";
import { openTestDatabase } from "../../../../test/support/connections.ts";
import { PostgresAcquirerSessions } from "./acquirer-sessions.ts";
import { insertLease } from "./rows.fixture.ts";

const connections = await openTestDatabase();
const sessions = new PostgresAcquirerSessions(connections);
async function listener(): Promise<{ readonly heard: string[]; end(): Promise<void> }> {
  const heard: string[] = [];
  const client = await connections.connectDirectly();
  client.on("notification", ({ payload = "" }) => heard.push(payload));
  await client.query("LISTEN paybell_session");
  return { heard, end: () => client.end() };
}

test("texts sent at the same time all arrive, in order and once, in a few commits", async () => {
  const { heard, end } = await listener();
  const texts = Array.from({ length: 250 }, (_, nth) => `text ${nth} ${"x".repeat(4_000)}`);
  const statements = vi.spyOn(connections.engine, "query");
  await Promise.all(texts.map((text) => sessions.publish(text)));
  // The first one alone, then those that came meanwhile, a hundred at once.
  expect(statements).toHaveBeenCalledTimes(4);
  statements.mockRestore();
  await expect.poll(() => heard.length).toBe(texts.length);
  expect(heard).toEqual(texts);
  await end();
});

test("a text that PostgreSQL refuses reaches no listener, and the next one does", async () => {
  const { heard, end } = await listener();
  await expect(sessions.publish("x".repeat(9_000))).rejects.toThrow("payload string too long");
  await sessions.publish("next");
  await expect.poll(() => heard).toEqual(["next"]);
  await end();
});

test("a text that nobody wants any more when its turn comes is not sent", async () => {
  const { heard, end } = await listener();
  const first = sessions.publish("first");
  await expect(sessions.publish("given up", () => false)).rejects.toThrow("not sent");
  await Promise.all([first, sessions.publish("last", () => true)]);
  await expect.poll(() => heard).toEqual(["first", "last"]);
  await end();
});

test("the holder of a session is who claimed it first, until it gives it up or its lease is gone", async () => {
  expect(await sessions.holder("bank")).toEqual({ leaseId: null, isUp: false, isSignedOff: false, detail: "" });
  const [first, second] = [await insertLease(connections.pool), await insertLease(connections.pool)];
  await sessions.claim("another bank", second);
  expect((await sessions.claim("bank", first)).leaseId).toBe(first);
  await sessions.describe("bank", first, { ok: true, isSignedOff: true, detail: "signed on" });
  await sessions.describe("bank", second, { ok: false, detail: "not its own" });
  await sessions.release("bank", second);
  expect(await sessions.claim("bank", second)).toEqual({
    leaseId: first,
    isUp: true,
    isSignedOff: false,
    detail: "signed on",
  });
  expect(await sessions.holder("bank")).toEqual({
    leaseId: first,
    isUp: true,
    isSignedOff: false,
    detail: "signed on",
  });
  await sessions.describe("bank", first, { ok: false, isSignedOff: true, detail: "signed off" });
  await connections.pool.query("DELETE FROM leases WHERE id = $1", [first]);
  expect((await sessions.holder("bank")).leaseId).toBeNull();
  const claimed = { leaseId: second, isUp: false, isSignedOff: false, detail: "" };
  expect(await sessions.claim("bank", second)).toEqual(claimed);
  await sessions.release("bank", second);
  expect((await sessions.holder("bank")).leaseId).toBeNull();
  expect(await sessions.holder("another bank")).toEqual(claimed);
});
