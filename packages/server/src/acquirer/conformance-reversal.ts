import assert from "node:assert/strict";
import { approval, type Check, codeOf, declines, rejectsUnanswered } from "./conformance-ask.fixture.ts";
import { again, emptyTotals } from "./till.fixture.ts";

interface Tokens {
  readonly approved: string;
  readonly declined: { readonly token: string };
  readonly silent: string;
  readonly silentFollowUps: string;
}

/** Reversal, of every message that it undoes. */
export function conformsInReversals(check: Check, tokens: Tokens): void {
  check("reverses a Sale that it never answered: it counts nowhere", async (acquirer, till) => {
    const sale = till.sale(tokens.silent);
    await rejectsUnanswered(acquirer, sale);
    assert.equal(await codeOf(acquirer, till.reversal(sale)), "00");
    await approval(acquirer, till.settlement(emptyTotals));
  });

  check("reverses a Sale and a PreAuth that it approved: neither can be followed then", async (acquirer, till) => {
    const sale = till.sale(tokens.approved);
    const saleAnswer = await approval(acquirer, sale);
    assert.equal(await codeOf(acquirer, till.reversal(sale)), "00");
    await declines(acquirer, till.void(sale, saleAnswer));
    const preAuth = till.preAuth(tokens.approved);
    const preAuthAnswer = await approval(acquirer, preAuth);
    assert.equal(await codeOf(acquirer, till.reversal(preAuth)), "00");
    await declines(acquirer, till.complete(preAuth, preAuthAnswer));
    await declines(acquirer, till.void(preAuth, preAuthAnswer));
    await approval(acquirer, till.settlement(emptyTotals));
  });

  check("reverses what it declined, which changes nothing", async (acquirer, till) => {
    const sale = till.sale(tokens.declined.token);
    await declines(acquirer, sale);
    assert.equal(await codeOf(acquirer, till.reversal(sale)), "00");
    await approval(acquirer, till.settlement(emptyTotals));
  });

  check("reverses a Void that it never answered: its original is valid again", async (acquirer, till) => {
    const sale = till.sale(tokens.silentFollowUps);
    const voided = till.void(sale, await approval(acquirer, sale));
    await rejectsUnanswered(acquirer, voided);
    assert.equal(await codeOf(acquirer, till.reversal(voided)), "00");
    const { amountMinor: saleTotalMinor } = sale;
    await approval(acquirer, till.settlement({ ...emptyTotals, saleQuantity: 1, saleTotalMinor }));
  });

  check("reverses a PreAuth-Complete: the PreAuth can be completed again", async (acquirer, till) => {
    const preAuth = till.preAuth(tokens.approved);
    const answer = await approval(acquirer, preAuth);
    const complete = till.complete(preAuth, answer);
    await approval(acquirer, complete);
    assert.equal(await codeOf(acquirer, till.reversal(complete)), "00");
    await approval(acquirer, till.complete(preAuth, answer, 1n));
    await approval(acquirer, till.settlement({ ...emptyTotals, saleQuantity: 1, saleTotalMinor: 1n }));
  });

  check(
    "answers 25 to a Reversal of an unknown message, and declines that message if it arrives later",
    async (acquirer, till) => {
      const sale = till.sale(tokens.approved);
      assert.equal(await codeOf(acquirer, till.reversal(sale)), "25");
      await declines(acquirer, sale);
      await declines(acquirer, again(sale));
      await approval(acquirer, till.settlement(emptyTotals));
    },
  );

  check("declines the repeat of an approval that was reversed meanwhile", async (acquirer, till) => {
    const sale = till.sale(tokens.approved);
    await approval(acquirer, sale);
    assert.equal(await codeOf(acquirer, till.reversal(sale)), "00");
    await declines(acquirer, again(sale));
  });

  check("gives a repeated Reversal the same answer, found or not", async (acquirer, till) => {
    const seen = till.sale(tokens.approved);
    await approval(acquirer, seen);
    for (const reversal of [till.reversal(seen), till.reversal(till.sale(tokens.approved))]) {
      const first = await codeOf(acquirer, reversal);
      assert.equal(await codeOf(acquirer, again(reversal)), first);
    }
    await approval(acquirer, till.settlement(emptyTotals));
  });
}
