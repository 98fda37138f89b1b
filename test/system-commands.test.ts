import { randomUUID } from "node:crypto";
import { afterAll, expect, test } from "vitest";
import { reportedSale, sale } from "./support/commands.ts";
import { startTestService } from "./support/service.ts";

const service = await startTestService();
const partner = await service.register();
afterAll(() => service.stop());

/** IPNs arrive in order: when this Sale's IPN is there, nothing created before it is still to come. */
async function idsUntilSentinel(): Promise<readonly (string | undefined)[]> {
  const { body } = await partner.run(sale());
  const deliveries = await partner.server.until((all) => all.some(({ received }) => received?.ipn.id === body["id"]));
  return deliveries.map(({ received }) => received?.ipn.id).filter((id) => id !== body["id"]);
}

test("a Logon is answered, kept, and not notified", async () => {
  const command = { command: "LOGON", reqId: randomUUID(), tid: "T0000001", mid: "M00000000000001" };
  const answer = await partner.run(command);
  expect(answer.status, answer.text).toBe(200);
  expect(answer.body).toMatchObject({ command: "LOGON", status: "SUCCESS", isoResponseCode: "00", notification: null });
  expect(await idsUntilSentinel()).toEqual([]);
  const kept = await partner.call("GET", `/v1/transactions/${String(answer.body["id"])}`);
  expect(kept.body).toMatchObject(answer.body);
});

test("Logon, Reversal and Batch Upload that a switch reports are kept, and not notified", async () => {
  const before = (await idsUntilSentinel()).length;
  const reported = ["LOGON", "REVERSAL", "BATCH_UPLOAD"].map((command) =>
    reportedSale(partner.id, { command, reqId: randomUUID() }),
  );
  const ids = await service.report(reported);
  expect(new Set(ids).size).toBe(3);
  const came = await idsUntilSentinel();
  expect(came.filter((id) => ids.includes(id ?? ""))).toEqual([]);
  expect(came).toHaveLength(before + 1);
  for (const [index, id] of ids.entries()) {
    const { body } = await partner.call("GET", `/v1/transactions/${id}`);
    expect(body).toMatchObject({ command: reported[index]?.["command"], status: "SUCCESS", notification: null });
  }
});
