import { randomUUID } from "node:crypto";
import { afterAll, expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import { queryHomes } from "../support/database.ts";
import type { HttpAnswer } from "../support/service.ts";
import { startInstances } from "./instances.fixture.ts";

const instances = await startInstances(1);
const partner = await instances.register();
afterAll(() => instances.stop());

let tids = 0;

function newTid(): string {
  tids += 1;
  return `R${String(tids).padStart(7, "0")}`;
}

const mid = "M00000000000001";

function command(name: string, fields: Readonly<Record<string, unknown>>) {
  return { command: name, reqId: randomUUID(), ...fields };
}

const voidOf = (transactionId: unknown) => command("VOID", { transactionId });
const reversalOf = (transactionId: unknown) => command("REVERSAL", { transactionId });
const completeOf = (transactionId: unknown, amount = "150000") =>
  command("PREAUTH_COMPLETE", { transactionId, amount });
const settlementOf = (tid: string) => command("SETTLEMENT", { tid, mid });
const preAuth = (tid: string) => ({ ...sale({ tid }), command: "PREAUTH" });

/** The answer to what must succeed: its id. */
async function done(json: Readonly<Record<string, unknown>>): Promise<string> {
  const { status, body, text } = await partner.run(json);
  expect(status, text).toBe(200);
  expect(body, text).toMatchObject({ status: "SUCCESS" });
  return String(body["id"]);
}

/** A problem with its code, and the state and the remedy in words. */
function expectProblem(
  { status, headers, body, text }: HttpAnswer,
  expected: number,
  code: string,
  words: RegExp,
): void {
  expect(status, text).toBe(expected);
  expect(headers.get("content-type")).toContain("application/problem+json");
  expect(body).toMatchObject({ status: expected, code, title: expect.stringMatching(/\w/) });
  expect(text).toMatch(words);
}

test("a Void twice is 409 already_voided", async () => {
  const id = await done(sale({ tid: newTid() }));
  await done(voidOf(id));
  expectProblem(await partner.run(voidOf(id)), 409, "already_voided", /was voided: there is nothing left to void/);
});

test("a Void of what is settled is 409 batch_settled", async () => {
  const tid = newTid();
  const id = await done(sale({ tid }));
  await done(settlementOf(tid));
  expectProblem(await partner.run(voidOf(id)), 409, "batch_settled", /is settled.*Send a REFUND/);
  expectProblem(await partner.run(reversalOf(id)), 409, "batch_settled", /is settled/);
});

test("a Void of what is reversed is 409 already_reversed", async () => {
  const id = await done(sale({ tid: newTid() }));
  await done(reversalOf(id));
  expectProblem(await partner.run(voidOf(id)), 409, "already_reversed", /was reversed/);
});

test("a Void of what was declined is 409 not_successful", async () => {
  const { body } = await partner.run(sale({ tid: newTid(), card: { token: "tok_decline_05" } }));
  expectProblem(await partner.run(voidOf(body["id"])), 409, "not_successful", /was not successful/);
});

test("a Void of an unknown transaction, and of another partner's, is the same 404", async () => {
  const other = await instances.register();
  const foreign = await other.run(sale({ tid: newTid() }));
  const unknown = await partner.run(voidOf("01980000-0000-7000-8000-000000000000"));
  expectProblem(unknown, 404, "not_found", /no transaction with this transactionId/);
  const theirs = await partner.run(voidOf(foreign.body["id"]));
  const { instance: _one, ...first } = unknown.body;
  const { instance: _two, ...second } = theirs.body;
  expect(second).toEqual(first);
  expect(theirs.status).toBe(404);
  const own = await other.run(voidOf(foreign.body["id"]));
  expect(own).toMatchObject({ status: 200, body: { status: "SUCCESS" } });
});

test("a Void of a Void, a Complete of a Sale and a Reversal of a Void are each their own 409", async () => {
  const id = await done(sale({ tid: newTid() }));
  const voiding = await done(voidOf(id));
  expectProblem(await partner.run(voidOf(voiding)), 409, "not_voidable", /void a SALE, PREAUTH or PREAUTH_COMPLETE/);
  expectProblem(await partner.run(completeOf(id)), 409, "not_completable", /complete a PREAUTH/);
  expectProblem(await partner.run(reversalOf(voiding)), 409, "not_reversible", /reverse a SALE/);
});

test("a Complete above the authorised amount is 409, and one twice too", async () => {
  const id = await done(preAuth(newTid()));
  expectProblem(
    await partner.run(completeOf(id, "150001")),
    409,
    "amount_above_authorised",
    /charge the rest with a SALE/,
  );
  await done(completeOf(id, "150000"));
  expectProblem(await partner.run(completeOf(id, "1")), 409, "already_completed", /was completed/);
  expectProblem(
    await partner.run(voidOf(id)),
    409,
    "already_completed",
    /for good: void its PREAUTH_COMPLETE while that is not settled/,
  );
});

test("a Complete of a PreAuth that has expired is 409 preauth_expired, and its Void releases the hold", async () => {
  const id = await done(preAuth(newTid()));
  const older = "UPDATE transactions SET created_at = now() - interval '31 days' WHERE id = $1";
  await queryHomes(instances.database, older, [id]);
  const late = await partner.run(completeOf(id));
  expectProblem(late, 409, "preauth_expired", /older than 30 days: void it, and send a new SALE or PREAUTH/);
  expect(await partner.run(voidOf(id))).toMatchObject({ status: 200, body: { status: "SUCCESS" } });
});

test("a second currency in an open batch is 409 batch_currency", async () => {
  const tid = newTid();
  await done(sale({ tid }));
  const other = await partner.run(sale({ tid, currency: "USD", amount: "1.00" }));
  expectProblem(other, 409, "batch_currency", /open batch is in VND: settle it/);
  await done(settlementOf(tid));
  await done(sale({ tid, currency: "USD", amount: "1.00" }));
});

test("another mid on a known tid is 409 terminal_mid_mismatch", async () => {
  const tid = newTid();
  await done(sale({ tid }));
  expectProblem(await partner.run(sale({ tid, mid: "M-OTHER" })), 409, "terminal_mid_mismatch", /another mid/);
});

test("a command during a settlement is 409 settlement_in_progress with Retry-After, and runs afterwards", async () => {
  const tid = newTid();
  await done(sale({ tid }));
  // They ask again once a second.
  const silence = instances.acquirers.map((acquirer) =>
    acquirer.behave(({ command: asked }) => (asked === "SETTLEMENT" ? { answers: "not_sent" } : undefined)),
  );
  const settling = partner.run(settlementOf(tid), { prefer: "respond-async" });
  expect((await settling).status).toBe(202);
  const during = sale({ tid });
  for (const refused of [await partner.run(during), await partner.run(settlementOf(tid))]) {
    expectProblem(refused, 409, "settlement_in_progress", /repeat the same request once the settlement has ended/);
    expect(refused.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
  }
  for (const end of silence) end();
  await partner.server.until((all) =>
    all.some(({ received }) => received?.headers.command === "SETTLEMENT" && received.ipn.tid === tid),
  );
  expect(await partner.run(during)).toMatchObject({ status: 200, body: { batchNo: "000002" } });
});

test("a REVERSAL before its original has that refused as reversed_before_arrival, and nothing charged", async () => {
  const late = sale({ tid: newTid() });
  await done(command("REVERSAL", { originalReqId: late["reqId"] }));
  const booked = instances.bank.all().length;
  expectProblem(await partner.run(late), 409, "reversed_before_arrival", /came before the command, which was not sent/);
  expect(instances.bank.all()).toHaveLength(booked);
});
