import assert from "node:assert/strict";
import {
  type Acquirer,
  type AcquirerAnswer,
  type AcquirerMessage,
  type AskOptions,
  type BatchTotals,
  NoAnswer,
  NotSent,
} from "./acquirer.ts";
import { again, emptyTotals, Till } from "./till.fixture.ts";

/** The cards of an acquirer under test, by what becomes of their messages. */
interface Tokens {
  readonly approved: string;
  readonly declined: { readonly token: string; readonly responseCode: string };
  /** Acted on, never answered. */
  readonly silent: string;
  /** Approved, after any time-out. */
  readonly late: string;
  /** Approved; its Voids and PreAuth-Completes are acted on and never answered. */
  readonly silentFollowUps: string;
  /** Approved; its Voids and PreAuth-Completes are approved after any time-out. */
  readonly lateFollowUps: string;
  readonly unusable: string;
}

/** An acquirer under test, and the means to provoke its behaviour. */
export interface AcquirerUnderTest {
  /** A link of its own to a bank that knows nothing yet of the suite's terminals. The suite closes it. */
  open(): Promise<Acquirer> | Acquirer;
  /** A terminal of the suite, which numbers its messages; `number` identifies it. */
  readonly till?: (number: number) => Till;
  readonly tokens: Tokens;
}

/** A test runner's own: vitest's `test` is one. */
type RegisterTest = (name: string, run: () => Promise<void>) => void;

/** The ledger's requirements on every acquirer, as tests. */
export function acquirerConformance(register: RegisterTest, subject: AcquirerUnderTest): void {
  const { till = (number) => new Till(number) } = subject;
  const check: Check = (name, run) =>
    register(name, async () => {
      const acquirer = await subject.open();
      try {
        await run(numbering(acquirer), till(1), () => till(2));
      } finally {
        await acquirer.close();
      }
    });
  conformsAsLink(check, subject.tokens);
  conformsInMoney(check, subject.tokens);
  conformsInReversals(check, subject.tokens);
  conformsInSettlement(check, subject.tokens);
  conformsInRefunds(check, subject.tokens);
}

/**
 * Asks as the ledger must: each message has a unique trace number and time on its terminal, and only a repeat has
 * its first one's. A host would treat anything else as a repeat.
 */
function numbering(acquirer: Acquirer): Acquirer {
  const numbers = new Map<string, string>();
  return {
    approvals: acquirer.approvals,
    refusesToken: (token) => acquirer.refusesToken(token),
    close: () => acquirer.close(),
    ask(message, options) {
      const { mid, tid, traceNo, atMs, repeat, ...content } = message;
      const number = [mid, tid, traceNo, atMs].join(" ");
      const asked = JSON.stringify(content, (_, value) => (typeof value === "bigint" ? value.toString() : value));
      const first = numbers.get(number) ?? asked;
      numbers.set(number, first);
      assert.equal(asked, first, `trace number ${traceNo} and its time belong to another message`);
      return acquirer.ask(message, options);
    },
  };
}

function conformsAsLink(check: Check, tokens: Tokens): void {
  check("counts 00 among its approvals", async (acquirer) => {
    assert.ok(acquirer.approvals.has("00"));
  });

  check("refuses a token it cannot use, without repeating it, and accepts those it can", async (acquirer) => {
    const refusal = acquirer.refusesToken(tokens.unusable);
    assert.ok(refusal !== undefined && refusal.length > 0);
    assert.ok(!refusal.includes(tokens.unusable));
    const { approved, declined, silent, late, silentFollowUps, lateFollowUps } = tokens;
    for (const token of [approved, declined.token, silent, late, silentFollowUps, lateFollowUps]) {
      assert.equal(acquirer.refusesToken(token), undefined);
    }
  });

  check("answers a Logon with 00, and its repeat too", async (acquirer, till) => {
    const logon = till.logon();
    assert.equal(await codeOf(acquirer, logon), "00");
    assert.equal(await codeOf(acquirer, again(logon)), "00");
  });

  check("ends in NoAnswer when no answer came in time", async (acquirer, till) => {
    await rejectsUnanswered(acquirer, till.sale(tokens.silent));
  });

  check("hands a late answer to onLateAnswer, once, after the time-out", async (acquirer, till) => {
    assert.equal((await lateAnswer(acquirer, till.sale(tokens.late))).responseCode, "00");
  });

  check("hands a follow-up's late answer over likewise", async (acquirer, till) => {
    const sale = till.sale(tokens.lateFollowUps);
    const voided = till.void(sale, await approval(acquirer, sale));
    assert.equal((await lateAnswer(acquirer, voided)).responseCode, "00");
  });

  check("answers concurrent messages, each with its own answer", async (acquirer, till) => {
    const asked = Array.from({ length: 200 }, (_, at) => {
      return codeOf(acquirer, till.sale(at % 2 === 0 ? tokens.approved : tokens.declined.token));
    });
    const codes = await Promise.all(asked);
    assert.deepEqual(
      codes,
      codes.map((_, at) => (at % 2 === 0 ? "00" : tokens.declined.responseCode)),
    );
  });

  check("leaves no caller waiting when it is closed, and delivers nothing afterwards", async (acquirer, till) => {
    const ended = assert.rejects(acquirer.ask(till.sale(tokens.silent), patient()), NoAnswer);
    await acquirer.close();
    await ended;
  });

  check("ends in NotSent once it is closed, because nothing can have left", async (acquirer, till) => {
    await acquirer.close();
    await assert.rejects(acquirer.ask(till.sale(tokens.approved), patient()), NotSent);
  });
}

/** Registers one check, on a link of its own. `other` is a second terminal of the merchant. */
export type Check = (name: string, run: (acquirer: Acquirer, till: Till, other: () => Till) => Promise<void>) => void;

async function codeOf(acquirer: Acquirer, message: AcquirerMessage): Promise<string> {
  return (await acquirer.ask(message, patient())).responseCode;
}

/** The answer of a message that must be approved. */
async function approval(acquirer: Acquirer, message: AcquirerMessage): Promise<AcquirerAnswer> {
  const answer = await acquirer.ask(message, patient());
  assert.equal(answer.responseCode, "00");
  return answer;
}

/** Asserts that a message is answered, and not approved. */
async function declines(acquirer: Acquirer, message: AcquirerMessage): Promise<void> {
  const code = await codeOf(acquirer, message);
  assert.ok(!acquirer.approvals.has(code), `${message.command} was approved with ${code}`);
}

async function rejectsUnanswered(acquirer: Acquirer, message: AcquirerMessage): Promise<void> {
  assert.ok((await askUnanswered(acquirer, message, patient())) instanceof NoAnswer);
}

/** The error of a message that left, in a time limit that grows until it can: a busy machine needs longer. */
export async function askUnanswered(
  acquirer: Pick<Acquirer, "ask">,
  message: AcquirerMessage,
  options: Omit<AskOptions, "timeoutMs">,
): Promise<unknown> {
  for (let timeoutMs = 20; ; timeoutMs *= 4) {
    const error: unknown = await acquirer.ask(message, { ...options, timeoutMs }).then(
      () => assert.fail("it was answered in time"),
      (reason: unknown) => reason,
    );
    if (!(error instanceof NotSent)) return error;
  }
}

/** The answer of a message that must not be answered in time, and then once. */
async function lateAnswer(acquirer: Acquirer, message: AcquirerMessage): Promise<AcquirerAnswer> {
  const late = Promise.withResolvers<AcquirerAnswer>();
  const seen: string[] = [];
  const onLateAnswer = (answer: AcquirerAnswer) => {
    seen.push("late answer");
    late.resolve(answer);
  };
  assert.ok((await askUnanswered(acquirer, message, { onLateAnswer })) instanceof NoAnswer);
  seen.push("time-out");
  const answer = await late.promise;
  await acquirer.close();
  assert.deepEqual(seen, ["time-out", "late answer"]);
  return answer;
}

/** In time is what comes while the test runs. */
function patient() {
  return { timeoutMs: 600_000, onLateAnswer: () => assert.fail("an answer in time is no late answer") };
}

/** Sale, Void, PreAuth and PreAuth-Complete. */
function conformsInMoney(check: Check, tokens: Tokens): void {
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

/** Reversal, of every message that it undoes. */
function conformsInReversals(check: Check, tokens: Tokens): void {
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

/** Settlement and Batch Upload. */
function conformsInSettlement(check: Check, { approved }: Tokens): void {
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
function conformsInRefunds(check: Check, { approved, silentFollowUps }: Tokens): void {
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
