import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import { type HttpAnswer, serviceOfFile } from "../support/service.ts";

const service = await serviceOfFile();
const partner = await service.register();

const voidOf = (transactionId: unknown) => ({ command: "VOID", reqId: randomUUID(), transactionId });

/** A problem with its code, and the state and the remedy in words. */
function expectProblem({ status, headers, body, text }: HttpAnswer, expected: number, code: string, words: RegExp) {
  expect(status, text).toBe(expected);
  expect(headers.get("content-type")).toContain("application/problem+json");
  expect(body).toMatchObject({ status: expected, code, title: expect.stringMatching(/\w/) });
  expect(text).toMatch(words);
}

test("a Void of an unknown transaction, and of another partner's, is the same 404", async () => {
  const other = await service.register();
  const foreign = await other.run(sale({ tid: "R0000001" }));
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

test("a Void of what is settled says why, and that a Refund may do it", async () => {
  const [tid, mid] = ["R0000002", "M00000000000001"];
  const { body } = await partner.run(sale({ tid, mid }));
  await partner.run({ command: "SETTLEMENT", reqId: randomUUID(), tid, mid });
  expectProblem(await partner.run(voidOf(body["id"])), 409, "batch_settled", /is settled.*Send a REFUND/);
});

test("a command during a settlement is 409 settlement_in_progress with Retry-After, and runs afterwards", async () => {
  const [tid, mid] = ["R0000003", "M00000000000001"];
  await partner.run(sale({ tid, mid }));
  // It asks again once a second.
  const end = service.acquirer.behave(({ command }) =>
    command === "SETTLEMENT" ? { answers: "not_sent" } : undefined,
  );
  const settlement = { command: "SETTLEMENT", reqId: randomUUID(), tid, mid };
  expect((await partner.run(settlement, { prefer: "respond-async" })).status).toBe(202);
  const during = sale({ tid, mid });
  const refused = await partner.run(during);
  expectProblem(refused, 409, "settlement_in_progress", /repeat the same request once the settlement has ended/);
  expect(refused.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
  end();
  await partner.server.until((all) =>
    all.some(({ received }) => received?.headers.command === "SETTLEMENT" && received.ipn.tid === tid),
  );
  expect(await partner.run(during)).toMatchObject({ status: 200, body: { batchNo: "000002" } });
});
