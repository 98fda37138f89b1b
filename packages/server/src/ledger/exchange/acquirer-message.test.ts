import { expect, test } from "vitest";
import type { AcquirerMessage } from "../../acquirer/acquirer.ts";
import type { Rule } from "../../acquirer/simulator/behaviour.ts";
import { bookUnmatched, LedgerBench, type LedgerInstance, LedgerTill } from "../ledger.fixture.ts";

const { bench, instance, partner } = await LedgerBench.ofFile();

/** Records all messages of one terminal by these instances, in order, and applies the rule to each. */
function watch(till: LedgerTill, on: readonly LedgerInstance[], rule: Rule = () => undefined): AcquirerMessage[] {
  const asked: AcquirerMessage[] = [];
  for (const { acquirer } of on) {
    acquirer.behave((message) => {
      if (message.tid !== till.tid) return undefined;
      asked.push(message);
      return rule(message);
    });
  }
  return asked;
}

/** The elements by which a later message refers to this one. */
const elementsOf = ({ transactionId, command, traceNo, atMs }: AcquirerMessage) => {
  return { transactionId, command, traceNo, atMs };
};

test("a message has the time of its transaction, and follow-ups refer to it by its own elements", async () => {
  const till = new LedgerTill();
  const asked = watch(till, [instance]);
  const sale = await instance.ended(partner, till.sale());
  await instance.ended(partner, till.void(sale));
  const preAuth = await instance.ended(partner, till.preAuth());
  await instance.ended(partner, till.complete(preAuth));
  const [sold, voided, authorised, completed] = asked;
  if (!sold || !voided || !authorised || !completed) throw new Error("each is asked");
  expect(sold.atMs).toBe(Date.parse(sale.facts.fields["transDateTime"] ?? ""));
  expect(sold).toMatchObject({ swipeType: "C", expDate: "" });
  const answerOf = ({ facts }: typeof sale) => {
    const { approveCode, refId } = facts.fields;
    return { approveCode, refId };
  };
  expect(voided).toMatchObject({ original: { ...elementsOf(sold), ...answerOf(sale) } });
  expect(completed).toMatchObject({ original: { ...elementsOf(authorised), ...answerOf(preAuth) } });
});

test("a Reversal refers to its command by its elements, and its repetition is the same message", async () => {
  const till = new LedgerTill();
  const gone = await bench.start();
  let silent = true;
  const asked = watch(till, [instance, gone], ({ command }) => {
    if (command === "VOID") return { answers: "never" };
    return silent && command === "REVERSAL" ? { answers: "lost" } : undefined;
  });
  const sale = await gone.ended(partner, till.sale());
  const voiding = await gone.ended(partner, till.void(sale));
  const reversals = () => asked.filter(({ command }) => command === "REVERSAL");
  await expect.poll(() => reversals().length, { interval: 5 }).toBeGreaterThan(0);
  await gone.crash();
  silent = false;
  await expect.poll(bench.afterDue(() => bench.reversalOf(voiding.id))).toMatchObject({ state: "DONE" });
  const [first, ...repeats] = reversals();
  const voided = asked.find(({ command }) => command === "VOID");
  if (!first || !voided) throw new Error("both were asked");
  const { traceNo, tid, mid } = voided;
  expect(first).toMatchObject({ traceNo, tid, mid, repeat: false, original: elementsOf(voided) });
  expect(first.atMs).toBeGreaterThanOrEqual(voided.atMs);
  expect(repeats.length).toBeGreaterThan(0);
  for (const repeated of repeats) expect(repeated).toEqual({ ...first, repeat: true });
});

test("an upload refers to each transaction by its own elements", async () => {
  const till = new LedgerTill();
  const asked = watch(till, [instance]);
  await instance.ended(partner, till.sale());
  bookUnmatched(bench, till);
  await instance.ended(partner, till.settlement());
  const [sold, settled] = asked;
  const upload = asked.find(({ command }) => command === "BATCH_UPLOAD");
  if (!sold || !settled) throw new Error("both were asked");
  expect(upload).toMatchObject({ uploaded: elementsOf(sold) });
  // Each message has its own number.
  expect(upload?.traceNo).not.toBe(settled.traceNo);
  expect(settled.atMs).toBeGreaterThanOrEqual(sold.atMs);
});
