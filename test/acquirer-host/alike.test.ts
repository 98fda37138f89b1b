import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AcquirerAnswer, AcquirerMessage } from "../../packages/server/src/acquirer/acquirer.ts";
import type { Iso8583Acquirer } from "../../packages/server/src/acquirer/iso8583/iso8583.ts";
import { SimulatedBank } from "../../packages/server/src/acquirer/simulator/bank.ts";
import { SimulatedAcquirer } from "../../packages/server/src/acquirer/simulator/simulator.ts";
import {
  again,
  emptyTotals,
  Till,
  type TillMoneyMessage,
  type TillStep,
  tillStep,
} from "../../packages/server/src/acquirer/till.fixture.ts";
import { connected } from "./acquirer.fixture.ts";
import { type AcquirerHost, needsHost, startHost } from "./host.ts";

const needed = needsHost();
// TEST_RUNS makes it long.
const runs = Number(process.env["TEST_RUNS"] ?? 20);

interface Step extends TillStep {
  readonly token: string;
  /** The settlement counts one too many, and uploads its batch. */
  readonly differs: boolean;
}

const steps = fc.array(
  fc.record<Step>({
    ...tillStep,
    token: fc.constantFrom("tok_approve", "tok_approve", "tok_approve", "tok_decline_51", "tok_approve_08"),
    differs: fc.boolean(),
  }),
  { minLength: 30, maxLength: 60 },
);

interface Sent {
  readonly message: TillMoneyMessage;
  /** The answer of the simulated bank, and that of the host. */
  readonly answers: readonly [AcquirerAnswer, AcquirerAnswer];
}

const patient = { timeoutMs: 600_000, onLateAnswer: () => expect.fail("no late answer is due") };

/** Sends one message to both, each with its own references; they must answer with the same code. */
class Pair {
  readonly bank = new SimulatedBank({ strict: true });
  readonly tills = [new Till(1), new Till(2)] as const;
  readonly sent: readonly [Sent[], Sent[]] = [[], []];
  readonly #simulated = new SimulatedAcquirer({ bank: this.bank });
  readonly #link: Iso8583Acquirer;

  constructor(link: Iso8583Acquirer) {
    this.#link = link;
  }

  async take({ kind, till: at, amountMinor, token, differs, at: back }: Step): Promise<void> {
    const till = this.tills[at];
    const sent = this.sent[at];
    const target = sent.at(-1 - back);
    if (kind === "sale") return this.#send(sent, till.sale(token, amountMinor));
    if (kind === "preAuth") return this.#send(sent, till.preAuth(token, amountMinor));
    if (kind === "settle") return this.#settle(till, sent, differs);
    if (kind === "reverseUnseen") return void (await this.#both(till.reversal(till.sale(token, amountMinor))));
    if (target === undefined) return;
    const { message, answers } = target;
    if (kind === "repeat") await this.#both(again(message));
    if (kind === "reverse") await this.#both(till.reversal(message));
    if (kind === "void") await this.#send(sent, till.void(message, answers[0]), target);
    if (kind === "refund") await this.#send(sent, till.refund(message, answers[0], amountMinor), target);
    if (kind === "complete") await this.#send(sent, till.complete(message, answers[0], amountMinor), target);
  }

  async #send(sent: Sent[], message: TillMoneyMessage, original?: Sent): Promise<void> {
    sent.push({ message, answers: await this.#both(message, original) });
  }

  async #settle(till: Till, sent: Sent[], differs: boolean): Promise<void> {
    const open = this.bank.openBatch(till.mid, till.tid, "VND");
    const own = open?.batchNo === till.batchNo ? open : { ...emptyTotals };
    const totals = { ...own, currency: "VND" };
    const settlement = till.settlement(differs ? { ...totals, saleQuantity: own.saleQuantity + 1 } : totals);
    let [answer] = await this.#both(settlement);
    if (differs) answer = await this.#upload(till, sent, settlement);
    if (answer.responseCode === "00") till.batchNo = (Number(till.batchNo) + 1).toString().padStart(6, "0");
  }

  /** One Sale of the terminal, whatever the bank has: the totals follow from it. */
  async #upload(till: Till, sent: Sent[], settlement: AcquirerMessage): Promise<AcquirerAnswer> {
    const uploaded = sent.findLast(({ message }) => message.command === "SALE" && message.batchNo === till.batchNo);
    if (uploaded !== undefined) await this.#both(till.upload(uploaded.message, uploaded.answers[0]), uploaded);
    const saleTotalMinor = uploaded?.message.amountMinor ?? 0n;
    const totals = { ...emptyTotals, saleQuantity: uploaded === undefined ? 0 : 1, saleTotalMinor };
    const [answer] = await this.#both({ ...settlement, totals, afterUpload: true } as AcquirerMessage);
    return answer;
  }

  async #both(message: AcquirerMessage, original?: Sent): Promise<readonly [AcquirerAnswer, AcquirerAnswer]> {
    const simulated = await this.#simulated.ask(message, patient);
    const host = await this.#link.ask(ofHost(message, original), patient);
    const about = `${message.command}${message.repeat ? " again" : ""}, trace number ${message.traceNo}`;
    expect(host.responseCode, about).toBe(simulated.responseCode);
    return [simulated, host];
  }
}

/** The same message, with what the host answered to its original. */
function ofHost(message: AcquirerMessage, original: Sent | undefined): AcquirerMessage {
  if (original === undefined) return message;
  const { approveCode, refId } = original.answers[1];
  if ("uploaded" in message) return { ...message, uploaded: { ...message.uploaded, approveCode, refId } };
  return "original" in message
    ? ({ ...message, original: { ...message.original, approveCode, refId } } as AcquirerMessage)
    : message;
}

describe("a host on jPOS", needed, () => {
  let host: AcquirerHost;
  let link: Iso8583Acquirer;
  beforeAll(async () => {
    host = await startHost();
    link = await connected([host.port]);
  });
  afterAll(async () => {
    await link.close();
    await host.stop();
  });

  test("answers any sequence of messages as the simulated bank does, whatever order they come in", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        await host.order("forget");
        const pair = new Pair(link);
        for (const step of sequence) await pair.take(step);
      }),
      { numRuns: runs },
    );
  });
});
