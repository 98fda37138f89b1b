import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { next } from "../packages/server/src/acquirer/simulator/behaviour.ts";
import { sale } from "./support/commands.ts";
import { serviceOfFile } from "./support/service.ts";

const [tid, mid] = ["BATCH001", "M00000000000001"];

const service = await serviceOfFile();
const partner = await service.register();

async function idOf(command: Readonly<Record<string, unknown>>): Promise<string> {
  const { status, body, text } = await partner.run(command);
  expect(status, text).toBeLessThan(300);
  return String(body["id"]);
}

const settle = () => idOf({ command: "SETTLEMENT", reqId: randomUUID(), tid, mid });

async function batchOf(id: string): Promise<unknown> {
  return (await partner.call("GET", `/v1/transactions/${id}`)).body["batch"];
}

test("a transaction shows its batch, and a settlement the one that it settles: open, closing, closed", async () => {
  const [first, second] = [await idOf(sale({ tid, mid })), await idOf({ ...sale({ tid, mid }), command: "PREAUTH" })];
  expect(await batchOf(first)).toEqual({ batchNo: "000001", state: "open" });
  expect(await batchOf(second)).toBeNull();

  service.acquirer.behave(next("SETTLEMENT", { declines: "12" }));
  const refused = await settle();
  await partner.server.until((all) => all.some(({ received }) => received?.ipn.id === refused));
  expect(await batchOf(refused), "the batch is left to the next settlement").toEqual({
    batchNo: "000001",
    state: "open",
  });

  // It is asked again once a second.
  const silent = service.acquirer.behave(({ command }) =>
    command === "SETTLEMENT" ? { answers: "not_sent" } : undefined,
  );
  const command = { command: "SETTLEMENT", reqId: randomUUID(), tid, mid };
  const { status, body } = await partner.run(command, { prefer: "respond-async" });
  expect([status, body["status"]]).toEqual([202, "INIT"]);
  const settled = String(body["id"]);
  for (const id of [settled, refused, first]) {
    expect(await batchOf(id)).toEqual({ batchNo: "000001", state: "closing" });
  }
  const during = sale({ tid, mid });
  const tooEarly = await partner.run(during);
  expect(tooEarly).toMatchObject({ status: 409, body: { code: "settlement_in_progress" } });
  expect(tooEarly.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
  silent();
  await partner.server.until((all) => all.some(({ received }) => received?.ipn.id === settled));
  for (const id of [settled, refused, first]) {
    expect(await batchOf(id)).toEqual({ batchNo: "000001", state: "closed" });
  }
  expect(await batchOf(await idOf(during))).toEqual({ batchNo: "000002", state: "open" });
  const voiding = await partner.run({ command: "VOID", reqId: randomUUID(), transactionId: first });
  expect(voiding).toMatchObject({
    status: 409,
    body: { code: "batch_settled", remedy: expect.stringMatching(/^Send a REFUND/) },
  });
});
