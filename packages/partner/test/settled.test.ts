import { randomUUID } from "node:crypto";
import { type CardIpn, receiver } from "@paybell/partner";
import { catchUp, client } from "@paybell/partner/client";
import { type Reconciliation, reconcile } from "@paybell/partner/reconcile";
import { afterAll, expect, it } from "vitest";
import { startTestService } from "../../../test/support/service.ts";

const service = await startTestService();
afterAll(() => service.stop());

const card = { token: "tok_approve", number: "411111******1111", swipeType: "C", aid: "A0000000031010" } as const;
const where = { tid: "T0000001", mid: "M00000001" } as const;

/** A batch with one of each: the partner's IPNs, and how it reconciles. */
async function settle(settlementTotal: "sum" | "net") {
  const partner = await service.register({ settlementTotal, ordering: "none" });
  const paybell = client({ baseUrl: service.baseUrl, apiKey: partner.secrets.apiKey });
  const sale = (amount: string, token: string = card.token) => {
    const money = { amount, currency: "USD", merchantTransId: "order-1", ...where, card: { ...card, token } };
    return paybell.runCommand({ command: "SALE", reqId: randomUUID(), ...money });
  };
  const preAuth = () =>
    paybell.runCommand({
      command: "PREAUTH",
      reqId: randomUUID(),
      amount: "80.00",
      currency: "USD",
      merchantTransId: "room-1",
      ...where,
      card,
    });
  const follow = (command: "VOID" | "PREAUTH_COMPLETE", transactionId: string) => {
    const given = { reqId: randomUUID(), transactionId };
    return paybell.runCommand(command === "VOID" ? { command, ...given } : { command, ...given, amount: "75.5" });
  };
  await sale("12.5");
  await sale("0.01");
  await sale("9.99", "tok_decline_51");
  await follow("VOID", (await sale("100")).id);
  const completed = await preAuth();
  await follow("PREAUTH_COMPLETE", completed.id);
  await follow("VOID", (await preAuth()).id);
  await preAuth();
  const reversed = await sale("33.00");
  await paybell.runCommand({ command: "REVERSAL", reqId: randomUUID(), transactionId: reversed.id });
  const settled = await paybell.runCommand({ command: "SETTLEMENT", reqId: randomUUID(), ...where });
  expect(settled.status).toBe("SUCCESS");

  const cards: (CardIpn & { originalTransactionId?: string | undefined })[] = [];
  let reconciled: Reconciliation<CardIpn> | undefined;
  let after: string | undefined;
  // An open transaction of any database of the server, another test's too, holds back what may be pulled, also for
  // longer than a wait. The settlement's IPN is the last.
  while (reconciled === undefined) {
    for await (const { received, cursor } of catchUp(paybell, after, receiver(partner.keys), { waitSeconds: 30 })) {
      after = cursor ?? after;
      const { originalTransactionId } = received;
      if (received.kind === "card") cards.push({ ...received.ipn, originalTransactionId });
      else reconciled = reconcile(received.ipn, cards, { settlementTotal });
      if (reconciled !== undefined) break;
    }
  }
  return { cards, reconciled, reversed };
}

it.each(["sum", "net"] as const)(
  "a real batch reconciles by the setting %s, but for what was reversed",
  async (how) => {
    const { cards, reconciled, reversed } = await settle(how);
    expect(cards).toHaveLength(11);
    // The partner reversed it, and a Reversal has no IPN.
    const transaction = cards.find(({ id }) => id === reversed.id);
    expect(reconciled?.findings).toEqual([
      { code: "notified_not_settled", transaction },
      { code: "total_differs", field: "saleQuantity", stated: "4", expected: "5" },
      { code: "total_differs", field: "saleTotalAmount", stated: "188.01", expected: "221.01" },
    ]);
  },
);
