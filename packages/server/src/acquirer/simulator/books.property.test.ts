import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AcquirerAnswer, BatchTotals } from "../acquirer.ts";
import { again, emptyTotals, Till, type TillMoneyMessage, type TillStep, tillStep } from "../till.fixture.ts";
import { SimulatedBank } from "./bank.ts";

interface Step extends TillStep {
  readonly declined: boolean;
}

const steps = fc.array(
  fc.record<Step>({
    ...tillStep,
    declined: fc.nat(5).map((odds) => odds === 0),
  }),
  { minLength: 40, maxLength: 80 },
);

/** A money message that the bank answered, and what a terminal knows of it by the answers alone. */
interface Sent {
  readonly message: TillMoneyMessage;
  readonly answer: AcquirerAnswer;
  readonly approved: boolean;
  readonly original: Sent | undefined;
  readonly batchNo: string;
  reversed: boolean;
}

const zeros = { batchNo: "", ...emptyTotals };

/** A terminal that records its answers in lists, and searches them for every question. */
class Ledger {
  readonly till: Till;
  readonly sent: Sent[] = [];

  constructor(till: Till) {
    this.till = till;
  }

  standing(command: TillMoneyMessage["command"], original?: Sent): Sent[] {
    return this.sent.filter((sent) => {
      const meant = sent.message.command === command && (original === undefined || sent.original === original);
      return meant && sent.approved && !sent.reversed;
    });
  }

  isFree(sent: Sent): boolean {
    const open = sent.message.command === "PREAUTH" || sent.batchNo === this.till.batchNo;
    const followed = this.standing("VOID", sent).length + this.standing("PREAUTH_COMPLETE", sent).length > 0;
    return sent.approved && !sent.reversed && open && !followed && !["VOID", "REFUND"].includes(sent.message.command);
  }

  totals(): BatchTotals {
    const inBatch = (sent: Sent) => sent.batchNo === this.till.batchNo;
    const sales = [...this.standing("SALE"), ...this.standing("PREAUTH_COMPLETE")].filter(inBatch);
    const voids = this.standing("VOID").filter(({ original }) => original !== undefined && sales.includes(original));
    const refunds = this.standing("REFUND").filter(inBatch);
    return {
      currency: "VND",
      saleQuantity: sales.length,
      saleTotalMinor: sum(sales),
      voidQuantity: voids.length,
      voidTotalMinor: sum(voids),
      refundQuantity: refunds.length,
      refundTotalMinor: sum(refunds),
    };
  }

  /** The amount of a settled Sale or PreAuth-Complete that was not refunded yet. */
  refundableMinor(sent: Sent): bigint {
    const { message, approved, reversed, batchNo } = sent;
    const isSale = message.command === "SALE" || message.command === "PREAUTH_COMPLETE";
    const stands = approved && !reversed && this.standing("VOID", sent).length === 0;
    if (!isSale || !stands || batchNo === this.till.batchNo) return 0n;
    return message.amountMinor - sum(this.standing("REFUND", sent));
  }
}

function sum(list: readonly Sent[]): bigint {
  return list.reduce((total, { message }) => total + message.amountMinor, 0n);
}

/** Takes one step, and compares the bank's answer with the terminal's own count. */
function take(bank: SimulatedBank, ledger: Ledger, step: Step): void {
  const { kind, amountMinor, declined } = step;
  const { till, sent } = ledger;
  if (kind === "settle") settle(bank, ledger);
  else if (kind === "reverseUnseen") reverseUnseen(bank, till.sale("token", amountMinor), till);
  else if (kind === "sale") send(bank, ledger, till.sale("token", amountMinor), { declined, foretold: true });
  else if (kind === "preAuth") send(bank, ledger, till.preAuth("token", amountMinor), { declined, foretold: true });
  else {
    const target = sent.at(-1 - step.at);
    if (target !== undefined) follow(bank, ledger, step, target);
  }
}

function follow(bank: SimulatedBank, ledger: Ledger, step: Step, target: Sent): void {
  const { kind, amountMinor, declined } = step;
  const { message, answer } = target;
  const { till } = ledger;
  if (kind === "repeat") repeat(bank, target);
  else if (kind === "reverse") reverse(bank, ledger, target);
  else if (kind === "void") {
    send(bank, ledger, till.void(message, answer), { declined, foretold: ledger.isFree(target), original: target });
  } else if (kind === "refund") {
    const foretold = amountMinor <= ledger.refundableMinor(target);
    send(bank, ledger, till.refund(message, answer, amountMinor), { declined, foretold, original: target });
  } else {
    const fits = message.command === "PREAUTH" && amountMinor <= message.amountMinor;
    const foretold = fits && ledger.isFree(target);
    send(bank, ledger, till.complete(message, answer, amountMinor), { declined, foretold, original: target });
  }
}

function send(
  bank: SimulatedBank,
  { till, sent }: Ledger,
  message: TillMoneyMessage,
  { declined, foretold, original }: { declined: boolean; foretold: boolean; original?: Sent },
): void {
  const answer = bank.receive(message, declined ? { declines: "05" } : {});
  const approved = answer.responseCode === "00";
  expect(approved, `${message.command} ${answer.responseCode}`).toBe(foretold && !declined);
  sent.push({ message, answer, approved, original, batchNo: till.batchNo, reversed: false });
}

function reverseUnseen(bank: SimulatedBank, overtaken: TillMoneyMessage, till: Till): void {
  expect(bank.receive(till.reversal(overtaken)).responseCode).toBe("25");
  expect(bank.receive(overtaken).responseCode).toBe("12");
}

function reverse(bank: SimulatedBank, ledger: Ledger, target: Sent): void {
  const { till } = ledger;
  const idle = !target.approved || target.reversed;
  const settled = isOfBatch(target) && batchNoOf(target) !== till.batchNo;
  const refused = settled || ledger.standing("PREAUTH_COMPLETE", target).length > 0;
  expect(bank.receive(till.reversal(target.message)).responseCode).toBe(refused && !idle ? "12" : "00");
  if (refused || idle) return;
  target.reversed = true;
  for (const voided of ledger.standing("VOID", target)) voided.reversed = true;
}

/** A Void belongs to its original's batch, a PreAuth to none. */
function isOfBatch({ message, original }: Sent): boolean {
  const counted = message.command === "VOID" ? original?.message.command : message.command;
  return counted !== "PREAUTH";
}

function batchNoOf({ batchNo, message, original }: Sent): string {
  return message.command === "VOID" ? (original?.batchNo ?? batchNo) : batchNo;
}

function settle(bank: SimulatedBank, ledger: Ledger): void {
  const { till } = ledger;
  const totals = ledger.totals();
  const wrong = till.settlement({ ...totals, saleTotalMinor: totals.saleTotalMinor + 1n });
  expect(bank.receive(wrong).responseCode).toBe("95");
  const settlement = till.settlement(totals);
  const answer = bank.receive(settlement);
  expect(answer.responseCode).toBe("00");
  expect(bank.receive(again(settlement))).toEqual(answer);
  expect(bank.settledBatch(till.mid, till.tid, "VND")).toEqual({ batchNo: till.batchNo, ...totals });
  till.batchNo = (Number(till.batchNo) + 1).toString().padStart(6, "0");
}

function repeat(bank: SimulatedBank, { message, answer, approved, reversed }: Sent): void {
  if (approved && reversed) expect(bank.receive(again(message)).responseCode).toBe("12");
  else expect(bank.receive(again(message))).toEqual(answer);
}

describe("a bank's books", () => {
  test("agree with what its answers told, whatever the messages and their order", () => {
    fc.assert(
      fc.property(steps, (taken) => {
        const bank = new SimulatedBank({ strict: true });
        const ledgers = [new Ledger(new Till(1)), new Ledger(new Till(2))] as const;
        for (const step of taken) {
          const ledger = ledgers[step.till];
          take(bank, ledger, step);
          const { mid, tid, batchNo } = ledger.till;
          const open = bank.openBatch(mid, tid, "VND") ?? zeros;
          expect({ ...open, batchNo }).toEqual({ batchNo, ...ledger.totals() });
        }
        for (const { sent } of ledgers) {
          for (const { message, answer } of sent) {
            expect(bank.find(message.transactionId)?.responseCode).toBe(answer.responseCode);
          }
        }
        for (const ledger of ledgers) settle(bank, ledger);
      }),
      { numRuns: 300 },
    );
  });

  test("hold as standing exactly what was approved, less what was voided, completed and reversed", () => {
    fc.assert(
      fc.property(steps, (taken) => {
        const bank = new SimulatedBank({ strict: true });
        const ledger = new Ledger(new Till());
        for (const step of taken) take(bank, ledger, step);
        const free = ledger.sent.filter((sent) => ledger.isFree(sent)).map(({ message }) => message.transactionId);
        const stands = bank.all().filter(({ state, command }) => {
          return state === "stands" && command !== "VOID" && command !== "REFUND";
        });
        expect(stands.map(({ transactionId }) => transactionId).sort()).toEqual(free.sort());
      }),
      { numRuns: 300 },
    );
  });
});
