import { randomUUID } from "node:crypto";
import type { AcquirerAnswer, AcquirerMessage, AuthorisationMessage, BatchTotals } from "../acquirer/acquirer.ts";
import { Iso8583Acquirer, type Iso8583Options } from "../acquirer/iso8583/iso8583.ts";
import type { LinkEvent } from "../acquirer/iso8583/link/link.ts";
import { shownFieldsOf } from "../acquirer/iso8583/mapping.ts";
import { maskedLines, type ShownFields } from "../acquirer/iso8583/message/masking.ts";

export interface AcquirerTestPlan {
  readonly mid: string;
  readonly tid: string;
  readonly token: string;
  readonly amountMinor: bigint;
  readonly currency: string;
  /** Six digits: an open and empty batch of the terminal. */
  readonly batchNo: string;
  /** The trace number of the first message; the next ones follow. */
  readonly traceNo: number;
  readonly timeoutMs: number;
}

/** One step of the run, and every message of it, masked. */
export interface AcquirerTestStep {
  readonly step: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly trace: readonly (readonly string[])[];
}

const traceNos = 999_999;
const connectTimeoutMs = 10_000;

/**
 * A certification run: sign-on, Logon, a Sale and its Void, a Sale and its Reversal, a Settlement. It cancels every
 * charge; a Sale without an answer is reversed too.
 *
 * @param tell called with each step as it ends
 * @returns whether every step had the expected result
 */
export async function testAcquirer(
  options: Iso8583Options,
  plan: AcquirerTestPlan,
  tell: (step: AcquirerTestStep) => void,
): Promise<boolean> {
  const run = new Run(options, plan, tell);
  try {
    return await run.all();
  } finally {
    await run.close();
  }
}

class Run {
  readonly #acquirer: Iso8583Acquirer;
  readonly #plan: AcquirerTestPlan;
  readonly #tell: (step: AcquirerTestStep) => void;
  #trace: string[][] = [];
  #messages = 0;
  #allOk = true;

  constructor(options: Iso8583Options, plan: AcquirerTestPlan, tell: (step: AcquirerTestStep) => void) {
    const shown = shownFieldsOf(options.profile);
    this.#plan = plan;
    this.#tell = tell;
    this.#acquirer = new Iso8583Acquirer({ ...options, onEvent: (event) => this.#note(event, shown) });
  }

  close(): Promise<void> {
    return this.#acquirer.close();
  }

  async all(): Promise<boolean> {
    const isUp = await this.#acquirer.isUpWithin(connectTimeoutMs);
    this.#end("Sign-on", isUp, this.#acquirer.health().detail);
    if (!isUp) return false;
    await this.#step("Logon", { command: "LOGON", ...this.#header() });
    const voided = this.#sale();
    const answer = await this.#step("Sale", voided);
    const isVoided = answer !== undefined && (await this.#void(voided, answer));
    // A charge that could not be voided must be reversed.
    if (!isVoided) await this.#reverse(voided);
    const reversed = this.#sale();
    await this.#step("Sale, to be reversed", reversed);
    await this.#reverse(reversed);
    await this.#step("Settlement", this.#settlement(isVoided ? this.#plan.amountMinor : undefined));
    return this.#allOk;
  }

  async #void(sale: AuthorisationMessage, answer: AcquirerAnswer): Promise<boolean> {
    const { batchNo, invoiceNo, amountMinor, currency } = sale;
    const original = referenceTo(sale, answer);
    const money = { batchNo, invoiceNo, amountMinor, currency };
    const message = { command: "VOID", ...this.#header(), ...money, original } as const;
    return (await this.#step("Void", message)) !== undefined;
  }

  async #reverse(sale: AuthorisationMessage): Promise<void> {
    const { batchNo, invoiceNo, amountMinor, currency, traceNo } = sale;
    const original = referenceTo(sale, { approveCode: "", refId: "" });
    const header = { ...this.#header(), traceNo };
    await this.#step("Reversal", {
      command: "REVERSAL",
      ...header,
      ...{ batchNo, invoiceNo, amountMinor, currency },
      original,
    });
  }

  /** @param voidedMinor the amount of the voided Sale, which counts on both sides of the totals */
  #settlement(voidedMinor: bigint | undefined): AcquirerMessage {
    const { batchNo, currency } = this.#plan;
    const quantity = voidedMinor === undefined ? 0 : 1;
    const total = voidedMinor ?? 0n;
    const totals: BatchTotals = {
      currency,
      saleQuantity: quantity,
      saleTotalMinor: total,
      voidQuantity: quantity,
      voidTotalMinor: total,
      refundQuantity: 0,
      refundTotalMinor: 0n,
    };
    return { command: "SETTLEMENT", ...this.#header(), batchNo, totals, afterUpload: false };
  }

  #sale(): AuthorisationMessage {
    const { token: cardToken, amountMinor, currency, batchNo } = this.#plan;
    const header = this.#header();
    const card = { cardToken, swipeType: "M", expDate: "" };
    return { command: "SALE", ...header, amountMinor, currency, batchNo, invoiceNo: header.traceNo, ...card };
  }

  #header() {
    const { mid, tid, traceNo: first } = this.#plan;
    const traceNo = (((first - 1 + this.#messages) % traceNos) + 1).toString().padStart(6, "0");
    this.#messages += 1;
    return { transactionId: randomUUID(), mid, tid, traceNo, atMs: Date.now(), repeat: false };
  }

  /** Asks, and reports the step. @returns the answer if it approves */
  async #step(step: string, message: AcquirerMessage): Promise<AcquirerAnswer | undefined> {
    const { timeoutMs } = this.#plan;
    try {
      const answer = await this.#acquirer.ask(message, { timeoutMs, onLateAnswer: () => undefined });
      const { responseCode, approveCode, refId } = answer;
      const parts = [responseCode, approveCode && `approval ${approveCode}`, refId && `reference ${refId}`];
      // Reversing a command that never arrived is a success too.
      const ok = responseCode === "00" || (message.command === "REVERSAL" && responseCode === "25");
      this.#end(step, ok, parts.filter((part) => part !== "").join(", "));
      return responseCode === "00" ? answer : undefined;
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const cause = error.cause instanceof Error ? ` (${error.cause.message})` : "";
      this.#end(step, false, `${error.name}: ${error.message}${cause}`);
      return undefined;
    }
  }

  #end(step: string, ok: boolean, detail: string): void {
    if (!ok) this.#allOk = false;
    this.#tell({ step, ok, detail, trace: this.#trace });
    this.#trace = [];
  }

  #note(event: LinkEvent, shown: ShownFields): void {
    if (event.kind === "sent" || event.kind === "received") {
      this.#trace.push([`${event.kind} ${event.host}`, ...maskedLines(event.message, shown)]);
    } else {
      this.#trace.push([`${event.kind} ${event.host}: ${event.detail}`]);
    }
  }
}

function referenceTo(
  sale: AuthorisationMessage,
  { approveCode, refId }: Pick<AcquirerAnswer, "approveCode" | "refId">,
) {
  const { transactionId, command, tid, traceNo, atMs } = sale;
  return { transactionId, command, tid, traceNo, atMs, approveCode, refId };
}
