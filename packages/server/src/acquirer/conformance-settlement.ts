import assert from "node:assert/strict";
import type { Acquirer, BatchTotals } from "./acquirer.ts";
import { approval, type Check, codeOf, declines, rejectsUnanswered } from "./conformance-ask.fixture.ts";
import { again, emptyTotals, type Till } from "./till.fixture.ts";

interface Tokens {
  readonly approved: string;
  readonly silentFollowUps: string;
}

/** Settlement and Batch Upload. */
export function conformsInSettlement(check: Check, { approved }: Tokens): void {
  check("settles an empty batch with zeros", async (acquirer, till) => {
    await approval(acquirer, till.settlement(emptyTotals));
  });

  check("settles an empty batch that has no currency", async (acquirer, till) => {
    await approval(acquirer, till.settlement({ ...emptyTotals, currency: "" }));
  });

  check("settles Sales and PreAuth-Completes with their Voids, and no PreAuth", async (acquirer, till) => {
    await approval(acquirer, till.settlement(await trade(acquirer, till, approved)));
  });

  check("answers 95 when the totals differ, and leaves the batch open", async (acquirer, till) => {
    const totals = await trade(acquirer, till, approved);
    const wrong = [
      { ...totals, saleQuantity: totals.saleQuantity + 1 },
      { ...totals, saleTotalMinor: totals.saleTotalMinor - 1n },
      { ...totals, voidQuantity: 0, voidTotalMinor: 0n },
      { ...totals, currency: "USD" },
      emptyTotals,
    ];
    for (const claimed of wrong) assert.equal(await codeOf(acquirer, till.settlement(claimed)), "95");
    await approval(acquirer, till.settlement(totals));
  });

  check("settles a batch once: the next begins empty, and nothing of it is voided", async (acquirer, till) => {
    const sale = till.sale(approved);
    const answer = await approval(acquirer, sale);
    await approval(acquirer, till.settlement({ ...emptyTotals, saleQuantity: 1, saleTotalMinor: sale.amountMinor }));
    till.batchNo = "000002";
    await declines(acquirer, till.void(sale, answer));
    await approval(acquirer, till.settlement(emptyTotals));
  });

  check("keeps a PreAuth across settlements: it is completed in the batch then open", async (acquirer, till) => {
    const preAuth = till.preAuth(approved);
    const answer = await approval(acquirer, preAuth);
    await approval(acquirer, till.settlement(emptyTotals));
    till.batchNo = "000002";
    await approval(acquirer, till.complete(preAuth, answer, 5n));
    await approval(acquirer, till.settlement({ ...emptyTotals, saleQuantity: 1, saleTotalMinor: 5n }));
  });

  check("gives a repeated Settlement the first answer, accepted or not", async (acquirer, till) => {
    const totals = await trade(acquirer, till, approved);
    const refused = till.settlement(emptyTotals);
    assert.equal(await codeOf(acquirer, refused), "95");
    assert.equal(await codeOf(acquirer, again(refused)), "95");
    const agreed = till.settlement(totals);
    const answer = await approval(acquirer, agreed);
    assert.deepEqual(await approval(acquirer, again(agreed)), answer);
  });

  check("settles by what was uploaded, after a mismatch", async (acquirer, till) => {
    const unknown = till.sale(approved, 700n);
    await approval(acquirer, unknown);
    const sale = till.sale(approved, 40n);
    const voided = till.sale(approved, 2n);
    const uploads = [till.upload(sale, await approval(acquirer, sale))];
    uploads.push(till.upload(voided, await approval(acquirer, voided), true));
    const totals = { ...emptyTotals, saleQuantity: 2, saleTotalMinor: 42n, voidQuantity: 1, voidTotalMinor: 2n };
    const settlement = till.settlement(totals);
    assert.equal(await codeOf(acquirer, settlement), "95");
    for (const upload of [...uploads, ...uploads.map(again)]) await approval(acquirer, upload);
    const last = till.afterUpload(settlement);
    await approval(acquirer, last);
    await approval(acquirer, again(last));
    till.batchNo = "000002";
    await approval(acquirer, till.settlement(emptyTotals));
  });
}

/** Refund, of what was settled. */
export function conformsInRefunds(check: Check, { approved, silentFollowUps }: Tokens): void {
  check("refunds a settled Sale and PreAuth-Complete in parts, up to their amounts", async (acquirer, till, other) => {
    const sale = till.sale(approved, 100n);
    const answer = await approval(acquirer, sale);
    await declines(acquirer, till.refund(sale, answer, 1n));
    const preAuth = till.preAuth(approved, 50n);
    const complete = till.complete(preAuth, await approval(acquirer, preAuth), 30n);
    const completeAnswer = await approval(acquirer, complete);
    await settled(acquirer, till, { saleQuantity: 2, saleTotalMinor: 130n });
    const part = till.refund(sale, answer, 60n);
    const { refId } = await approval(acquirer, part);
    assert.match(refId, /^[0-9A-Z]{1,12}$/);
    assert.equal((await approval(acquirer, again(part))).refId, refId);
    await declines(acquirer, till.refund(sale, answer, 41n));
    await approval(acquirer, other().refund(sale, answer, 40n));
    await declines(acquirer, till.refund(preAuth, answer, 1n));
    await approval(acquirer, till.refund(complete, completeAnswer));
    await settled(acquirer, till, { refundQuantity: 2, refundTotalMinor: 90n });
  });

  check("reverses a Refund that it never answered: as much can be refunded again", async (acquirer, till) => {
    const sale = till.sale(silentFollowUps, 100n);
    const answer = await approval(acquirer, sale);
    await settled(acquirer, till, { saleQuantity: 1, saleTotalMinor: 100n });
    for (const refund of [till.refund(sale, answer), till.refund(sale, answer)]) {
      await rejectsUnanswered(acquirer, refund);
      assert.equal(await codeOf(acquirer, till.reversal(refund)), "00");
    }
    await settled(acquirer, till, {});
  });

  check("settles by uploaded Refunds, too", async (acquirer, till) => {
    const sale = till.sale(approved, 100n);
    const answer = await approval(acquirer, sale);
    await settled(acquirer, till, { saleQuantity: 1, saleTotalMinor: 100n });
    const refund = till.refund(sale, answer, 30n);
    const upload = till.upload(refund, await approval(acquirer, refund));
    const settlement = till.settlement({ ...emptyTotals, refundQuantity: 1, refundTotalMinor: 30n });
    assert.equal(await codeOf(acquirer, till.settlement(emptyTotals)), "95");
    await approval(acquirer, upload);
    await approval(acquirer, till.afterUpload(settlement));
  });
}

/** Settles the open batch by its totals; then the next one is open. */
async function settled(acquirer: Acquirer, till: Till, totals: Partial<BatchTotals>): Promise<void> {
  await approval(acquirer, till.settlement({ ...emptyTotals, ...totals }));
  till.batchNo = (Number(till.batchNo) + 1).toString().padStart(6, "0");
}

/** Five transactions that add up to two sales, one of them voided. */
async function trade(acquirer: Acquirer, till: Till, approved: string) {
  const sale = till.sale(approved, 100n);
  const answer = await approval(acquirer, sale);
  await approval(acquirer, till.void(sale, answer));
  const preAuth = till.preAuth(approved, 1_000n);
  await approval(acquirer, till.complete(preAuth, await approval(acquirer, preAuth), 30n));
  const left = till.preAuth(approved, 5_000n);
  await approval(acquirer, left);
  return { ...emptyTotals, saleQuantity: 2, saleTotalMinor: 130n, voidQuantity: 1, voidTotalMinor: 100n };
}
