import { randomUUID } from "node:crypto";
import { currencyDecimals } from "@paybell/contract";
import type { AcquirerAnswer, AcquirerMessage, AuthorisationMessage, BatchTotals } from "../acquirer/acquirer.ts";
import { Iso8583Acquirer, type Iso8583Options } from "../acquirer/iso8583/iso8583.ts";
import type { LinkEvent } from "../acquirer/iso8583/link/link.ts";
import { shownFieldsOf } from "../acquirer/iso8583/mapping.ts";
import { maskedLines, type ShownFields } from "../acquirer/iso8583/message/masking.ts";
import { oneSessionOf } from "../acquirer/iso8583/profile/read.ts";
import { type HostOptions, iso8583Options, withAcquirerLinks } from "../app/configured-acquirers.ts";
import { amountProblem, parseAmount } from "../commands/amount.ts";
import { type Config, ConfigError, readConfig } from "../config/config.ts";
import { messageOf } from "../errors.ts";
import { openMasterKey } from "./master-key.ts";
import type { RunContext } from "./run.ts";

export interface AcquirerTestOptions {
  /** The name of a registered acquirer; absent: the one of the settings. */
  readonly name?: string;
  readonly mid?: string;
  readonly tid?: string;
  readonly token?: string;
  readonly amount?: string;
  readonly currency: string;
  readonly batch: string;
  readonly trace: string;
  readonly json: boolean;
}

/** `paybell acquirer test`. @returns 0 if every step had the expected result, 2 if nothing was asked */
export async function runAcquirerTest({ process }: RunContext, options: AcquirerTestOptions): Promise<number> {
  const { stdout, stderr, env } = process;
  try {
    const { name } = options;
    const config = readConfig(env, name === undefined ? [] : ["databaseUrl", "masterKey"]);
    const plan = planOf(options, config);
    const steps: AcquirerTestStep[] = [];
    const run = (link: HostOptions) =>
      testAcquirer(link, plan, (step) => {
        steps.push(step);
        if (!options.json) stdout.write(stepText(step));
      });
    const ok = name === undefined ? await run(await iso8583Options(config)) : await onRegistered(config, name, run);
    if (options.json) stdout.write(`${JSON.stringify({ ok, steps }, null, 2)}\n`);
    return ok ? 0 : 1;
  } catch (error) {
    const problems = error instanceof ConfigError ? error.problems : [messageOf(error)];
    stderr.write(problems.map((problem) => `paybell: ${problem}\n`).join(""));
    return 2;
  }
}

async function onRegistered(
  config: Config,
  name: string,
  run: (link: HostOptions) => Promise<boolean>,
): Promise<boolean> {
  // readConfig has required it.
  const databaseUrl = config.databaseUrl as string;
  return withAcquirerLinks(databaseUrl, await openMasterKey(config), async (links) => {
    const options = await links.registered(name);
    if (options === undefined) throw new ConfigError([`no acquirer is registered as ${name}`]);
    if (options.profile.network.sessions === "one" && (await links.sessionHolder(name)).leaseId !== null) {
      throw new ConfigError([`an instance has ${oneSessionOf(options.profile)}: stop the service first`]);
    }
    return run(links.withShared(name, options));
  });
}

function planOf(options: AcquirerTestOptions, config: Config): AcquirerTestPlan {
  const { mid = "", tid = "", token = "", currency, amount = "", batch, trace } = options;
  const problems: string[] = [];
  if (options.name === undefined && config.acquirer !== "iso8583")
    problems.push("PAYBELL_ACQUIRER=iso8583 is required: there is no host to test");
  for (const [name, value] of Object.entries({ mid, tid, token })) {
    if (value === "") problems.push(`--${name} is required`);
  }
  const decimals = currencyDecimals(currency);
  const wrongAmount = amountProblem(amount, decimals);
  if (decimals === undefined) problems.push("--currency must be a code of ISO 4217, such as VND");
  if (wrongAmount !== undefined) problems.push(`--amount ${wrongAmount}`);
  if (!/^\d{6}$/.test(batch)) problems.push("--batch must be six digits");
  if (!/^\d{1,6}$/.test(trace) || Number(trace) === 0) problems.push("--trace must be a number from 1 to 999999");
  if (decimals === undefined || problems.length > 0) throw new ConfigError(problems);
  const amountMinor = parseAmount(amount, decimals);
  const { acquirerTimeoutMs: timeoutMs } = config;
  return { mid, tid, token, currency, amountMinor, batchNo: batch, traceNo: Number(trace), timeoutMs };
}

function stepText({ step, ok, detail, trace }: AcquirerTestStep): string {
  const lines = trace.flatMap(([head = "", ...rest]) => [`  ${head}`, ...rest.map((line) => `    ${line}`)]);
  return `${[...lines, `${ok ? "ok   " : "ERROR"}  ${step.padEnd(22)}${detail}`].join("\n")}\n\n`;
}

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
async function testAcquirer(
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
    const original = referenceTo(sale, answer);
    const message = { command: "VOID", ...this.#header(), ...sameOf(sale), original } as const;
    return (await this.#step("Void", message)) !== undefined;
  }

  async #reverse(sale: AuthorisationMessage): Promise<void> {
    const original = referenceTo(sale, { approveCode: "", refId: "" });
    const header = { ...this.#header(), traceNo: sale.traceNo };
    await this.#step("Reversal", { command: "REVERSAL", ...header, ...sameOf(sale), original });
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

/** What a later message has too. The card is sent if the host wants it again. */
function sameOf({ batchNo, invoiceNo, amountMinor, currency, cardToken, swipeType, expDate }: AuthorisationMessage) {
  return { batchNo, invoiceNo, amountMinor, currency, cardToken, swipeType, expDate };
}

function referenceTo(
  sale: AuthorisationMessage,
  { approveCode, refId }: Pick<AcquirerAnswer, "approveCode" | "refId">,
) {
  const { transactionId, command, tid, traceNo, atMs } = sale;
  return { transactionId, command, tid, traceNo, atMs, approveCode, refId };
}
