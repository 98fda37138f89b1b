import assert from "node:assert/strict";
import { approval, type Check, codeOf, declines, patient } from "./conformance-ask.fixture.ts";
import { again, emptyTotals } from "./till.fixture.ts";

interface Tokens {
  readonly approved: string;
  readonly declined: { readonly token: string; readonly responseCode: string };
}

/** Sale, Void, PreAuth and PreAuth-Complete. */
export function conformsInMoney(check: Check, tokens: Tokens): void {
  check("answers an approved Sale and PreAuth with 00, an approval code and a reference", async (acquirer, till) => {
    for (const message of [till.sale(tokens.approved), till.preAuth(tokens.approved)]) {
      const answer = await approval(acquirer, message);
      assert.match(answer.approveCode, /^[0-9A-Z]{1,6}$/);
      assert.match(answer.refId, /^[0-9A-Z]{1,12}$/);
    }
  });

  check("answers a declined Sale with its code, as an answer and not as an error", async (acquirer, till) => {
    const answer = await acquirer.ask(till.sale(tokens.declined.token), patient());
    assert.equal(answer.responseCode, tokens.declined.responseCode);
    assert.ok(!acquirer.approvals.has(answer.responseCode));
  });

  check("voids a Sale, a PreAuth and a PreAuth-Complete, each once", async (acquirer, till) => {
    const sale = till.sale(tokens.approved);
    const preAuth = till.preAuth(tokens.approved);
    const completed = till.preAuth(tokens.approved);
    const complete = till.complete(completed, await approval(acquirer, completed));
    for (const original of [sale, preAuth, complete]) {
      const answer = await approval(acquirer, original);
      await approval(acquirer, till.void(original, answer));
      await declines(acquirer, till.void(original, answer));
    }
  });

  check("declines the Void of what it never saw, of what it declined, and of a Void", async (acquirer, till) => {
    const unseen = { responseCode: "00", approveCode: "A1B2C3", refId: "000000000001", tc: "" };
    await declines(acquirer, till.void(till.sale(tokens.approved), unseen));
    const declined = till.sale(tokens.declined.token);
    await declines(acquirer, till.void(declined, await acquirer.ask(declined, patient())));
    const sale = till.sale(tokens.approved);
    const voided = till.void(sale, await approval(acquirer, sale));
    await declines(acquirer, till.void(voided, await approval(acquirer, voided)));
  });

  check("declines the Void of another terminal's Sale", async (acquirer, till, other) => {
    const sale = till.sale(tokens.approved);
    const answer = await approval(acquirer, sale);
    await declines(acquirer, other().void(sale, answer));
  });

  check(
    "completes a PreAuth for less than authorised, once, and does not void it afterwards",
    async (acquirer, till) => {
      const preAuth = till.preAuth(tokens.approved, 900n);
      const answer = await approval(acquirer, preAuth);
      const complete = await approval(acquirer, till.complete(preAuth, answer, 899n));
      assert.match(complete.refId, /^[0-9A-Z]{1,12}$/);
      await declines(acquirer, till.complete(preAuth, answer, 1n));
      await declines(acquirer, till.void(preAuth, answer));
    },
  );

  check(
    "completes a PreAuth at another terminal of the merchant, in whose batch it counts",
    async (acquirer, till, other) => {
      const preAuth = till.preAuth(tokens.approved, 900n);
      const second = other();
      const complete = second.complete(preAuth, await approval(acquirer, preAuth), 899n);
      const answer = await approval(acquirer, complete);
      await approval(acquirer, till.settlement(emptyTotals));
      const totals = { ...emptyTotals, saleQuantity: 1, saleTotalMinor: 899n };
      await approval(acquirer, second.void(complete, answer));
      await approval(acquirer, second.settlement({ ...totals, voidQuantity: 1, voidTotalMinor: 899n }));
    },
  );

  check("declines to complete above the authorised amount, a Sale, and what it never saw", async (acquirer, till) => {
    const preAuth = till.preAuth(tokens.approved, 900n);
    const answer = await approval(acquirer, preAuth);
    await declines(acquirer, till.complete(preAuth, answer, 901n));
    await approval(acquirer, till.complete(preAuth, answer, 900n));
    const sale = till.sale(tokens.approved);
    await declines(acquirer, till.complete(sale, await approval(acquirer, sale)));
    await declines(acquirer, till.complete(till.preAuth(tokens.approved), answer));
  });

  check("gives a repeat the first answer, and acts once", async (acquirer, till) => {
    const sale = till.sale(tokens.approved);
    const answer = await approval(acquirer, sale);
    assert.deepEqual(await approval(acquirer, again(sale)), answer);
    const voided = till.void(sale, answer);
    assert.deepEqual(await approval(acquirer, voided), await approval(acquirer, again(voided)));
    const preAuth = till.preAuth(tokens.approved);
    const complete = till.complete(preAuth, await approval(acquirer, preAuth));
    assert.deepEqual(await approval(acquirer, complete), await approval(acquirer, again(complete)));
    const declined = till.sale(tokens.declined.token);
    assert.equal(await codeOf(acquirer, declined), await codeOf(acquirer, again(declined)));
    const once = { ...emptyTotals, saleQuantity: 2, saleTotalMinor: 300_000n };
    await approval(acquirer, till.settlement({ ...once, voidQuantity: 1, voidTotalMinor: 150_000n }));
  });

  check("acts on a repeat whose first never arrived", async (acquirer, till) => {
    const sale = again(till.sale(tokens.approved));
    await approval(acquirer, till.void(sale, await approval(acquirer, sale)));
  });
}
