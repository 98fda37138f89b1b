import { createHash } from "node:crypto";
import { canonicalJson, type NotifiedCommand, notifiedCommands } from "@paybell/contract";
import type { Logger } from "pino";
import { type Acquirer, NoAnswer, NotSent } from "../acquirer/acquirer.ts";
import type { Clock } from "../clock.ts";
import { requestProblems } from "../commands/check.ts";
import type { Outcome } from "../commands/outcome.ts";
import type { CommandRequest } from "../commands/request.ts";
import { badFields, type FieldProblem, PaybellError } from "../errors.ts";
import type { EventSink } from "../events.ts";
import { type ChainId, newId, type PartnerId, type TransactionId } from "../ids.ts";
import type { Instance, Lease } from "../instance.ts";
import type { Metrics } from "../metrics.ts";
import { callbackUrlProblem } from "../partners/callback-url.ts";
import type { Partner } from "../partners/partner.ts";
import type { NewNotification, Notifier } from "./notifier.ts";
import { type Completed, complete, type Procedure, procedureFor } from "./procedure.ts";
import type { CompletionStore, Init, TransactionStore } from "./store.ts";
import type { Transaction } from "./transaction.ts";

export interface LedgerParts {
  readonly transactions: TransactionStore;
  readonly completions: CompletionStore;
  readonly acquirer: Acquirer;
  readonly notifier: Notifier;
  readonly lease: Lease;
  readonly events: EventSink;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, "commands" | "commandSeconds" | "notificationsCreated" | "lateAnswers">;
  readonly acquirerTimeoutMs: number;
  /** Commands in the acquirer's hands at once; more are refused before anything is accepted. */
  readonly commandsMax: number;
  readonly sandbox: boolean;
  /** Whether the operator registered this device for the partner: its serial number is known to be no card number. */
  isRegisteredDevice(partnerId: PartnerId, deviceId: string): Promise<boolean>;
}

export interface CommandAnswer {
  readonly transaction: Transaction;
  /** False: the outcome is not known yet, and comes as an IPN. */
  readonly done: boolean;
}

/** How long a caller waits beyond the acquirer's time-out, for the result to become durable. */
const answerGraceMs = 5_000;
/** How long the repeat of a command that still runs waits for its outcome. */
const repeatWaitMs = 10_000;
const repeatPollMs = 250;

/** Runs commands: INIT durable, acquirer asked, result and IPN durable, answer. */
export class Ledger {
  readonly #parts: LedgerParts;
  readonly #running = new Map<TransactionId, Promise<Transaction>>();
  #stopping = false;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
  }

  find(partnerId: PartnerId, id: TransactionId): Promise<Transaction | undefined> {
    return this.#parts.transactions.find(partnerId, id);
  }

  findByReqId(partnerId: PartnerId, reqId: string): Promise<Transaction | undefined> {
    return this.#parts.transactions.findByReqId(partnerId, reqId);
  }

  /**
   * @throws PaybellError with every bad field, before anything is durable; 409 when the state forbids the command; 503
   * `unavailable` only before anything was accepted.
   */
  async run(partner: Partner, request: CommandRequest, options: { respondAsync: boolean }): Promise<CommandAnswer> {
    await this.#requireValid(partner, request);
    const instance = this.#parts.lease.current();
    if (instance === undefined || this.#stopping || this.#running.size >= this.#parts.commandsMax) {
      throw new PaybellError("unavailable", "No more commands can be taken now.", { retryAfterS: 1 });
    }
    const nowMs = this.#parts.clock.nowMs();
    const id = newId<"transaction">(nowMs);
    const procedure = procedureFor(request, { id, atMs: nowMs });
    const init = toInit(partner, request, id, instance, procedure);
    const begun = await this.#parts.transactions.begin(init);
    if (begun.outcome === "repeated") return this.#repeat(partner, begun, options.respondAsync);
    if (begun.outcome === "mid_mismatch") {
      throw new PaybellError("terminal_mid_mismatch", `tid ${init.tid} is known under another mid.`);
    }
    if (begun.outcome === "terminal_unknown") {
      throw new PaybellError("terminal_not_registered", `tid ${init.tid} is not registered.`);
    }
    const begunTransaction = toTransaction(init, begun.facts, begun.createdAtMs);
    const running = this.#process(partner, begunTransaction, procedure, instance).finally(() =>
      this.#running.delete(id),
    );
    this.#running.set(id, running);
    // Whoever waits learns of a failure; without this line one that nobody waits for would end the process.
    running.catch(() => undefined);
    if (options.respondAsync) return { transaction: begunTransaction, done: false };
    return this.#awaitOutcome(running, begunTransaction, this.#parts.acquirerTimeoutMs + answerGraceMs);
  }

  /** Completes, as in doubt, what an instance that is gone had begun: ERROR 96. Resolves to how many. */
  async takeOver(partnerOf: (id: PartnerId) => Promise<Partner | undefined>): Promise<number> {
    const instance = this.#parts.lease.current();
    if (instance === undefined) return 0;
    const taken = await this.#parts.transactions.takeOver(instance, 500);
    await Promise.all(
      taken.map(async (transaction) => {
        const partner = await partnerOf(transaction.partnerId);
        if (partner === undefined) return;
        this.#parts.log.warn({ transaction: transaction.id }, "took over a command in doubt; it ends as ERROR 96");
        this.#record(transaction, "in_doubt", { command: transaction.command });
        await this.#finish(partner, transaction, complete(transaction.facts, { kind: "in_doubt" }, partner), instance);
      }),
    );
    return taken.length;
  }

  /** Takes no more commands, and resolves when those that run have ended, at the latest after `timeoutMs`. */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopping = true;
    await within(timeoutMs, Promise.allSettled(this.#running.values()));
  }

  async #requireValid(partner: Partner, request: CommandRequest): Promise<void> {
    const { settings } = partner;
    const context = { signing: settings.signing, sandbox: this.#parts.sandbox, registeredDeviceIds: new Set<string>() };
    let problems: FieldProblem[] = requestProblems(request, context);
    const deviceId = "deviceId" in request ? request.deviceId : undefined;
    const looksLikeCard = problems.some(({ field, code }) => field === "deviceId" && code === "card_number_in_clear");
    if (deviceId && looksLikeCard && (await this.#parts.isRegisteredDevice(partner.id, deviceId))) {
      problems = requestProblems(request, { ...context, registeredDeviceIds: new Set([deviceId]) });
    }
    const callBackUrl = "callBackUrl" in request && request.callBackUrl ? request.callBackUrl : undefined;
    if (callBackUrl !== undefined) {
      const rules = { sandbox: this.#parts.sandbox };
      const problem = callbackUrlProblem("callBackUrl", callBackUrl, rules, settings.callbackAddresses);
      if (problem) problems.push(problem);
    }
    const refusal = "card" in request ? this.#parts.acquirer.refusesToken(request.card.token) : undefined;
    if (refusal !== undefined) problems.push({ field: "card.token", code: "unknown_test_card", message: refusal });
    const [first, ...others] = problems;
    if (first) throw badFields([first, ...others]);
    if (isNotified(request.command) && callBackUrl === undefined && settings.callBackUrl === null) {
      throw new PaybellError("no_callback_url");
    }
  }

  async #repeat(
    partner: Partner,
    begun: { readonly sameBody: boolean; readonly id: TransactionId },
    respondAsync: boolean,
  ): Promise<CommandAnswer> {
    if (!begun.sameBody) throw new PaybellError("req_id_reused");
    const deadlineMs = this.#parts.clock.monotonicMs() + (respondAsync ? 0 : repeatWaitMs);
    const running = this.#running.get(begun.id);
    if (running !== undefined)
      await within(
        deadlineMs - this.#parts.clock.monotonicMs(),
        running.catch(() => undefined),
      );
    for (;;) {
      const transaction = await this.#parts.transactions.find(partner.id, begun.id);
      if (transaction === undefined)
        throw new PaybellError("unavailable", "The first request is being taken back.", { retryAfterS: 1 });
      const done = transaction.state !== "INIT";
      if (done || this.#parts.clock.monotonicMs() >= deadlineMs) return { transaction, done };
      // Another instance runs it.
      await new Promise((resolve) => setTimeout(resolve, repeatPollMs));
    }
  }

  async #awaitOutcome(running: Promise<Transaction>, begun: Transaction, timeoutMs: number): Promise<CommandAnswer> {
    const transaction = await within(timeoutMs, running);
    return transaction === undefined
      ? { transaction: begun, done: false }
      : { transaction, done: transaction.state !== "INIT" };
  }

  async #process(partner: Partner, begun: Transaction, procedure: Procedure, instance: Instance): Promise<Transaction> {
    const startedMs = this.#parts.clock.monotonicMs();
    const outcome = await this.#ask(begun, procedure);
    const transaction = await this.#finish(partner, begun, complete(begun.facts, outcome, partner), instance).catch(
      (error: unknown) => {
        // Nobody may wait for ever for a command whose result cannot be stored: it ends in doubt.
        this.#parts.log.error({ err: error, transaction: begun.id }, "the result of a command could not be stored");
        this.#record(begun, "in_doubt", { command: begun.command });
        return this.#finish(partner, begun, complete(begun.facts, { kind: "in_doubt" }, partner), instance);
      },
    );
    const { command } = begun;
    this.#parts.metrics.commandSeconds.observe({ command }, (this.#parts.clock.monotonicMs() - startedMs) / 1_000);
    return transaction;
  }

  async #ask(begun: Transaction, procedure: Procedure): Promise<Outcome> {
    const { acquirer, log, acquirerTimeoutMs: timeoutMs } = this.#parts;
    try {
      const onLateAnswer = (answer: { readonly responseCode: string }) => {
        const approved = acquirer.approvals.has(answer.responseCode);
        this.#parts.metrics.lateAnswers.inc({ approved: String(approved) });
        this.#record(begun, approved ? "late_approval" : "late_answer", {
          responseCode: answer.responseCode,
          approved,
        });
      };
      const answer = await acquirer.ask(procedure.message(begun.facts), { timeoutMs, onLateAnswer });
      return { kind: "answered", answer, approvals: acquirer.approvals };
    } catch (error) {
      if (error instanceof NotSent) return { kind: "not_sent" };
      if (!(error instanceof NoAnswer)) log.error({ err: error, transaction: begun.id }, "asking the acquirer broke");
      return { kind: "no_answer" };
    }
  }

  /** Makes a command's result durable with its IPN, and passes the notification on. */
  async #finish(partner: Partner, begun: Transaction, completed: Completed, instance: Instance): Promise<Transaction> {
    const { state, facts } = completed;
    const draft = facts.kind === "system" ? null : newNotification(begun, facts);
    const slot = draft
      ? this.#parts.notifier.reserve(partner.id, draft.content.length, begun.originalId !== null)
      : undefined;
    const notification = draft && { ...draft, lease: slot?.instance ?? null };
    const answer = await this.#parts.completions
      .complete({ partnerId: begun.partnerId, id: begun.id, instance, state, facts, notification })
      .catch((error: unknown) => {
        slot?.release();
        throw error;
      });
    if (answer.outcome === "late") {
      slot?.release();
      return (await this.find(begun.partnerId, begun.id)) ?? begun;
    }
    this.#parts.metrics.commands.inc({ command: begun.command, outcome: state });
    if (completed.warnings.length > 0) this.#record(begun, "delimiter_sent", { fields: completed.warnings });
    if (notification) {
      this.#parts.metrics.notificationsCreated.inc({ command: notification.command });
      if (slot) slot.send(notification, answer.atMs);
      else this.#parts.notifier.bornDue(partner.id);
    }
    const told = notification ? { id: notification.id, state: "pending" as const } : null;
    return { ...begun, state, facts, notification: told, completedAtMs: answer.atMs };
  }

  #record(
    transaction: Transaction,
    kind: "in_doubt" | "late_answer" | "late_approval" | "delimiter_sent",
    detail: Readonly<Record<string, unknown>>,
  ): void {
    this.#parts.events.record({ kind, partnerId: transaction.partnerId, subjectId: transaction.id, detail });
  }
}

function toInit(
  partner: Partner,
  request: CommandRequest,
  id: TransactionId,
  instance: Instance,
  procedure: Procedure,
): Init {
  const reqId = request.reqId.toLowerCase();
  const { tid, mid, takes, amountMinor, currency, callBackUrl } = procedure;
  return {
    partnerId: partner.id,
    id,
    instance,
    command: request.command,
    reqId,
    bodyHash: createHash("sha256")
      .update(canonicalJson({ ...request, reqId }))
      .digest(),
    originalId: null,
    chainId: id as string as ChainId,
    tid,
    mid,
    callBackUrl,
    openTerminals: partner.settings.terminals === "open",
    takes,
    amountMinor,
    currency,
    facts: (terminal) => procedure.begin(terminal),
  };
}

function toTransaction(init: Init, facts: Transaction["facts"], createdAtMs: number): Transaction {
  const { partnerId, id, command, reqId, originalId, chainId, callBackUrl } = init;
  return {
    partnerId,
    id,
    origin: "command",
    command,
    state: "INIT",
    reqId,
    externalId: null,
    originalId,
    originalExternalId: null,
    chainId,
    callBackUrl,
    facts,
    notification: null,
    createdAtMs,
    completedAtMs: null,
  };
}

function newNotification(transaction: Transaction, facts: NewNotification["facts"]): Omit<NewNotification, "lease"> {
  const { partnerId, id, originalId, chainId, callBackUrl } = transaction;
  return {
    partnerId,
    id: newId<"notification">(),
    transactionId: id,
    originalId,
    originalExternalId: null,
    chainId,
    command: facts.command,
    callBackUrl,
    facts,
    content: JSON.stringify(facts),
  };
}

function isNotified(command: string): command is NotifiedCommand {
  return notifiedCommands.some((notified) => notified === command);
}

/** Undefined when the time is over first. */
async function within<Result>(timeoutMs: number, result: Promise<Result>): Promise<Result | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const timedOut = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), timeoutMs);
  });
  try {
    return await Promise.race([result, timedOut]);
  } finally {
    clearTimeout(timer);
  }
}
