import { expect, test } from "vitest";
import { dumpRows } from "../../../../test/support/rows.ts";
import type { AcquirerMessage } from "../acquirer/acquirer.ts";
import { transactionView } from "../http/payments/commands.ts";
import { bookUnmatched, LedgerBench, LedgerTill } from "./ledger.fixture.ts";

const chip = {
  sequenceNumber: "001",
  track2: "A1B2C3D4E5F60718293A4B5C6D7E8F90",
  pinBlock: "FEDCBA9876543210",
  emv: "9F2608A1B2C3D4E5F60718",
};

const { bench, instance, partner } = await LedgerBench.ofFile({ wantsCards: true });

test("chip data goes to the acquirer in one message, its answer to the caller, and neither is stored", async () => {
  const till = new LedgerTill();
  const asked: AcquirerMessage[] = [];
  instance.acquirer.behave((message) => {
    asked.push(message);
    return undefined;
  });
  const plain = till.sale();
  const request = { ...plain, card: { ...plain.card, ...chip } };
  const sale = await instance.ended(partner, request);
  expect(asked[0]).toMatchObject({ command: "SALE", ...chip });
  expect(transactionView(sale, partner.settings)).toMatchObject({ status: "SUCCESS", emv: "8A023030" });
  const repeated = await instance.ended(partner, request);
  expect(transactionView(repeated, partner.settings)).not.toHaveProperty("emv");
  expect(transactionView(await instance.find(partner, sale.id), partner.settings)).not.toHaveProperty("emv");

  await instance.ended(partner, till.void(sale));
  bookUnmatched(bench, till);
  await instance.ended(partner, till.settlement());
  expect(asked.map(({ command }) => command)).toContain("BATCH_UPLOAD");
  const later = JSON.stringify(asked.slice(1), (_, value) => (typeof value === "bigint" ? `${value}` : value));
  const kept = [await dumpRows(bench.database), instance.logged.join(), later];
  for (const secret of [chip.track2, chip.pinBlock, chip.emv, "8A023030"]) {
    for (const text of kept) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(secret.toLowerCase());
    }
  }
});

test("a chip gets the answer to a decline, too: it may block the card", async () => {
  const plain = new LedgerTill().sale("tok_decline_51");
  const declined = await instance.ended(partner, { ...plain, card: { ...plain.card, ...chip } });
  expect(transactionView(declined, partner.settings)).toMatchObject({ status: "ERROR", emv: "8A023531" });
});

test("a card number or track in the clear is refused before anything is durable", async () => {
  const plain = new LedgerTill().sale();
  for (const clear of [{ track2: "4111111111111111D2912201" }, { emv: "5A084111111111111111" }]) {
    const refused = instance.run(partner, { ...plain, card: { ...plain.card, ...clear } });
    await expect(refused).rejects.toMatchObject({ status: 400, code: "card_number_in_clear" });
  }
  expect(await instance.ledger.findByReqId(partner.id, plain.reqId)).toBeUndefined();
});
