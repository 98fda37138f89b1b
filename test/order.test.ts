import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { sale } from "./support/commands.ts";
import { inHomes } from "./support/database.ts";
import type { ReceivedDelivery } from "./support/receiver.ts";
import { serviceOfFile, type TestPartner } from "./support/service.ts";

const service = await serviceOfFile();

const accepted = (all: readonly ReceivedDelivery[]) =>
  all.filter(({ answer }) => answer === 204).map(({ received }) => received?.headers.command);

async function voidOf(partner: TestPartner, transactionId: unknown): Promise<void> {
  const { reqId } = sale();
  const { status, text } = await partner.run({ command: "VOID", reqId, transactionId });
  if (status !== 200) throw new Error(`the Void was not accepted: ${text}`);
}

// Each has a partner of its own.
describe.concurrent("the notifications of one chain", () => {
  test("leave in commit order: a Void's waits until its Sale's is accepted", async () => {
    const partner = await service.register({ retry: [2, 3_600] });
    const { promise: when, resolve: answer } = Promise.withResolvers<void>();
    partner.server.answers({ when, status: 503 });
    const { body } = await partner.run(sale());
    await partner.server.next(1);
    await voidOf(partner, body["id"]);
    answer();
    const all = await partner.server.until((deliveries) => accepted(deliveries).includes("VOID"));
    expect(all.map(({ received, answer: given }) => [received?.headers.command, given])).toEqual([
      ["SALE", { when, status: 503 }],
      ["SALE", 204],
      ["VOID", 204],
    ]);
    expect(all.map(({ headers }) => headers["paybell-out-of-order"])).toEqual([undefined, undefined, undefined]);
  });

  test("are sent as they come if the partner wants no order", async () => {
    const partner = await service.register({ ordering: "none" });
    const { promise: when, resolve: answer } = Promise.withResolvers<void>();
    partner.server.answers({ when, status: 204 });
    const { body } = await partner.run(sale());
    await partner.server.next(1);
    await voidOf(partner, body["id"]);
    const all = await partner.server.until((deliveries) => accepted(deliveries).includes("VOID"));
    answer();
    expect(all.filter(({ headers }) => headers["paybell-out-of-order"] !== undefined)).toEqual([]);
  });

  test("leave out of order, and say so, when the earlier one was waited for ten minutes", async () => {
    const partner = await service.register({ retry: [3_600] });
    partner.server.answers(503);
    const { body } = await partner.run(sale());
    await partner.server.next(1);
    await voidOf(partner, body["id"]);
    // Not due while their time is set back: a read in between would compare one's new time with the other's
    // old.
    await inHomes(service.database, async (client) => {
      const both = "UPDATE pending SET due_at = now() + $2 * interval '1 minute'";
      await client.query(`${both} WHERE partner_id = $1`, [partner.id, 60]);
      const setBack = "UPDATE pending SET schedule_start = now() - $2 * interval '1 second' WHERE partner_id = $1";
      await client.query(`${setBack} AND NOT follows`, [partner.id, 661]);
      await client.query(`${setBack} AND follows`, [partner.id, 660]);
      await client.query(`${both} WHERE partner_id = $1 AND follows`, [partner.id, 0]);
    });
    const [, second] = await partner.server.next(2);
    expect(second?.received?.headers.command).toBe("VOID");
    expect(second?.headers["paybell-out-of-order"]).toBe("1");
  });
});

describe.concurrent("a settlement's notification", () => {
  test("leaves after those of its batch", async () => {
    const partner = await service.register({ retry: [2, 3_600] });
    const { promise: when, resolve: answer } = Promise.withResolvers<void>();
    partner.server.answers({ when, status: 503 }, { when, status: 503 });
    const own = { tid: "T0000009" };
    await partner.run(sale(own));
    await partner.run(sale(own));
    await partner.server.next(2);
    const { reqId, mid } = sale();
    const settled = await partner.run({ command: "SETTLEMENT", reqId, mid, ...own });
    expect(settled.status, settled.text).toBe(200);
    answer();
    const all = await partner.server.until((deliveries) => accepted(deliveries).includes("SETTLEMENT"));
    expect(all.map(({ received }) => received?.headers.command)).toEqual([
      "SALE",
      "SALE",
      "SALE",
      "SALE",
      "SETTLEMENT",
    ]);
    expect(accepted(all)).toEqual(["SALE", "SALE", "SETTLEMENT"]);
  });

  test("leaves after that of a Void of its batch", async () => {
    const partner = await service.register({ retry: [2, 3_600] });
    const own = { tid: "T0000010" };
    const { body } = await partner.run(sale(own));
    await partner.server.next(1);
    const { promise: when, resolve: answer } = Promise.withResolvers<void>();
    partner.server.answers({ when, status: 503 });
    await voidOf(partner, body["id"]);
    await partner.server.next(2);
    const { reqId, mid } = sale();
    await partner.run({ command: "SETTLEMENT", reqId, mid, ...own });
    answer();
    const all = await partner.server.until((deliveries) => accepted(deliveries).includes("SETTLEMENT"));
    expect(accepted(all)).toEqual(["SALE", "VOID", "SETTLEMENT"]);
  });
});

/** As a switch reports them: the data of its terminal's batch, with a unique id. */
function reportedOf(partner: TestPartner, command: string, change: Readonly<Record<string, unknown>> = {}) {
  return {
    partnerId: partner.id,
    externalId: `${command}-${randomUUID()}`,
    command,
    status: "SUCCESS",
    ...(command === "SETTLEMENT"
      ? { saleQuantity: "1", saleTotalAmount: "150000", voidQuantity: "0" }
      : { isoResponseCode: "00", amount: "150000", currency: "VND" }),
    tid: "T0000001",
    mid: "M00000000000001",
    batchNo: "000017",
    ...change,
  };
}

describe.concurrent("the notification of a settlement that a switch reported", () => {
  test("leaves last of one report, and a Void after its Sale, wherever they stand in it", async () => {
    const partner = await service.register({ retry: [2, 3_600] });
    partner.server.answers(503);
    const results = await service.report([
      reportedOf(partner, "SETTLEMENT"),
      reportedOf(partner, "VOID", { originalExternalId: "sale", externalId: "void" }),
      reportedOf(partner, "SALE", { externalId: "sale" }),
    ]);
    const all = await partner.server.until((deliveries) => accepted(deliveries).includes("SETTLEMENT"));
    expect(all.map(({ received, answer }) => [received?.headers.command, answer])).toEqual([
      ["SALE", 503],
      ["SALE", 204],
      ["VOID", 204],
      ["SETTLEMENT", 204],
    ]);
    expect(all.slice(1).map(({ received }) => received?.ipn.id)).toEqual(results.toReversed());
  });

  test("leaves after that of a Void that names no batch: it is in its Sale's", async () => {
    const partner = await service.register({ retry: [2, 3_600] });
    await service.report([reportedOf(partner, "SALE", { externalId: "sale" })]);
    await partner.server.next(1);
    const { promise: when, resolve: answer } = Promise.withResolvers<void>();
    partner.server.answers({ when, status: 503 });
    await service.report([reportedOf(partner, "VOID", { originalExternalId: "sale", batchNo: undefined })]);
    await partner.server.next(2);
    await service.report([reportedOf(partner, "SETTLEMENT")]);
    answer();
    const all = await partner.server.until((deliveries) => accepted(deliveries).includes("SETTLEMENT"));
    expect(accepted(all)).toEqual(["SALE", "VOID", "SETTLEMENT"]);
  });

  test("is sent as it comes if the partner wants no order", async () => {
    const partner = await service.register({ retry: [3_600], ordering: "none" });
    partner.server.answers(503);
    await service.report([reportedOf(partner, "SALE")]);
    await partner.server.next(1);
    await service.report([reportedOf(partner, "SETTLEMENT")]);
    expect(accepted(await partner.server.next(2))).toEqual(["SETTLEMENT"]);
  });
});
