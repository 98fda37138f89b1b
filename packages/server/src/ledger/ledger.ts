import { notifiedCommands } from "@paybell/contract";
import {
  type AcquirerAnswer,
  type AcquirerMessage,
  type Acquirers,
  NoAnswer,
  NotSent,
  OtherSite,
} from "../acquirer/acquirer.ts";
import { type Clock, within } from "../clock.ts";
import type { AcquirerOutcome } from "../commands/outcome.ts";
import { requestProblems } from "../commands/requests/check.ts";
import type { CommandRequest } from "../commands/requests/request.ts";
import { exemptDevice } from "../commands/requests/rules.ts";
import { badFields, type FieldProblem, ServiceError } from "../errors.ts";
import { isUuid, type LeaseId, newId, type PartnerId, readId, type TransactionId } from "../ids.ts";
import type { Lease } from "../leases/lease.ts";
import { registeredUrl } from "../notification.ts";
import type { Partner } from "../partners/partner.ts";
import { callbackUrlProblem } from "../partners/settings/callback-rules.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { CommandSlots } from "./command-slots.ts";
import { resultOf } from "./completer.ts";
import type { TerminalAcquirers } from "./exchange/terminal-acquirers.ts";
import { bodyHashOf, type InitParts, refusedBy, toInit, toTransaction } from "./init.ts";
import { type MessageOf, type Procedure, procedureFor } from "./procedure.ts";
import { InDoubt, type InDoubtParts } from "./reversals/in-doubt.ts";
import { PartnerReversals, type PartnerReversalsParts } from "./reversals/partner-reversals.ts";
import type { ReversalStore, Reverser } from "./reversals/reverser.ts";
import type { Settler } from "./settlements/settler.ts";
import type { Begun, Init, Transaction, TransactionStore } from "./store.ts";

export interface LedgerParts extends InitParts, InDoubtParts, PartnerReversalsParts {
  readonly transactions: TransactionStore;
  readonly reversals: ReversalStore;
  readonly reverser: Pick<Reverser, "wake" | "stop">;
  readonly settler: Pick<Settler, "wake" | "stop">;
  /** Without any, commands are refused before anything is accepted. */
  readonly acquirers: Acquirers;
  readonly terminals: Pick<TerminalAcquirers, "of" | "reread">;
  readonly lease: Pick<Lease, "current" | "isHeld">;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, "commandSeconds" | "lateAnswers">;
  readonly acquirerTimeoutMs: number;
  readonly preAuthDays: number;
  /** Commands at the acquirer at the same time, shared among partners; more are refused before anything is accepted. */
  readonly commandsMax: number;
  /**
   * Whether the operator registered this device for the partner: then its serial number is known not to be a card
   * number.
   */
  isRegisteredDevice(partnerId: PartnerId, deviceId: string): Promise<boolean>;
  /** Runs a command that has begun, to its end: for traces. */
  readonly traceCommand?: ((begun: Transaction, run: () => Promise<Transaction>) => Promise<Transaction>) | undefined;
}

export interface CommandAnswer {
  readonly transaction: Transaction;
  /** False: the outcome is not known yet, and arrives as an IPN. */
  readonly done: boolean;
}

type LateAnswer = Pick<AcquirerAnswer, "responseCode" | "isAmbiguous">;

/** The time beyond the acquirer's timeout that a caller waits for a durable result. */
const answerGraceMs = 5_000;
/** The time for which the repetition of a running command waits for its outcome. */
const repeatWaitMs = 10_000;
const notSent: AcquirerOutcome = { kind: "not_sent" };
const pollMinMs = 10;
const pollMaxMs = 250;
const reverseAgainMs = 1_000;
/** A terminal that has another acquirer at each look is being changed over and over. */
const reroutesMax = 3;
/** A link that is at another host at each try changes its host over and over. */
const sitesMax = 3;

/** Runs commands: makes INIT durable, asks the acquirer, makes the result and its IPN durable, answers. */
export class Ledger {
  readonly #parts: LedgerParts;
  readonly #running = new Map<TransactionId, Promise<Transaction>>();
  /** Commands whose INIT is being written. */
  readonly #beginning = new Set<TransactionId>();
  readonly #inDoubt: InDoubt;
  readonly #partnerReversals: PartnerReversals;
  readonly #slots: CommandSlots;
  readonly #stopping = new AbortController();
  /** Settlements continue on another instance: nobody on this one waits for them. */
  #isHandedOver = false;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
    this.#slots = new CommandSlots(parts.commandsMax);
    this.#partnerReversals = new PartnerReversals(parts, (begun) => this.#awaitSent(begun));
    this.#inDoubt = new InDoubt(parts, {
      running: () => [...this.#beginning, ...this.#running.keys()],
      reverse: (partner, begun) => this.#partnerReversals.run(partner, begun),
    });
  }

  find(partnerId: PartnerId, id: TransactionId): Promise<Transaction | undefined> {
    return this.#parts.transactions.find(partnerId, id);
  }

  findByReqId(partnerId: PartnerId, reqId: string): Promise<Transaction | undefined> {
    return this.#parts.transactions.findByReqId(partnerId, reqId);
  }

  /** The transaction with its original, Voids, completion and Reversal, in order. */
  chain(transaction: Transaction): Promise<readonly Transaction[]> {
    return this.#parts.transactions.chain(transaction);
  }

  /**
   * @throws ServiceError with every invalid field, before anything is durable; 404 if the original does not exist; 409
   * if the state forbids the command; 503 `unavailable` only before anything was accepted.
   */
  async run(partner: Partner, request: CommandRequest, options: { respondAsync: boolean }): Promise<CommandAnswer> {
    try {
      await this.#requireValid(partner, request);
    } catch (refusal) {
      const id = await this.#findBegun(partner, request);
      if (id === undefined) throw refusal;
      return await this.#repeat(partner, { sameBody: true, id }, options.respondAsync);
    }
    const leaseId = this.#parts.lease.current();
    const releaseSlot =
      leaseId === undefined || this.#stopping.signal.aborted ? undefined : this.#slots.acquire(partner.id);
    if (leaseId === undefined || releaseSlot === undefined) {
      throw new ServiceError("unavailable", "No more commands can be accepted now.", { retryAfterS: 1 });
    }
    const { begun, init, procedure } = await this.#begin(partner, request, leaseId).catch((error: unknown) => {
      releaseSlot();
      if (!(error instanceof ServiceError)) this.#inDoubt.searchLater();
      throw error;
    });
    if (begun.outcome !== "begun") releaseSlot();
    if (begun.outcome === "repeated") return this.#repeat(partner, begun, options.respondAsync);
    if (begun.outcome !== "begun") throw refusedBy(begun, init);
    const transaction = toTransaction(init, begun.facts, begun.createdAtMs);
    const { id } = transaction;
    const { traceCommand } = this.#parts;
    const run = () => this.#execute(partner, transaction, procedure);
    const running = (traceCommand === undefined ? run() : traceCommand(transaction, run)).finally(() => {
      this.#running.delete(id);
      releaseSlot();
    });
    this.#running.set(id, running);
    // INIT is durable. After any failure the answer is the outcome, or that it is not known yet: an error would make
    // the caller pay again under a new reqId.
    const outcome = running.catch((error: unknown) => {
      this.#parts.log.error({ err: error, transaction: id }, "the outcome of a command is not known");
      if (procedure.askedBy !== "settler") this.#inDoubt.add(transaction);
      return undefined;
    });
    if (options.respondAsync) return { transaction, done: false };
    const ended = await within(this.#parts.acquirerTimeoutMs + answerGraceMs, outcome);
    return { transaction: ended ?? transaction, done: ended !== undefined && ended.state !== "INIT" };
  }

  async #begin(
    partner: Partner,
    request: CommandRequest,
    leaseId: LeaseId,
  ): Promise<{ begun: Begun; init: Init; procedure: Procedure }> {
    const original = await this.#originalOf(partner, request);
    const start = { id: newId<"transaction">(), atMs: this.#parts.clock.nowMs() };
    const procedure = procedureFor(request, { start, original, preAuthDays: this.#parts.preAuthDays });
    const { terminals, acquirers, transactions } = this.#parts;
    let acquirer = original?.acquirer ?? (await terminals.of(partner.id, procedure.tid));
    for (let tries = 1; ; tries += 1) {
      const problem = tries === 1 ? undefined : await this.#tokenProblem(partner.id, request);
      if (problem !== undefined) throw badFields([problem]);
      const why = await this.#unreachable(partner, request, procedure, acquirer);
      if (why === undefined) {
        const site = acquirers.of(acquirer).site?.() ?? null;
        const own = { id: start.id, leaseId, acquirer, site, procedure, original };
        const init = toInit(this.#parts, partner, request, own);
        this.#beginning.add(start.id);
        const begun = await transactions.begin(init).finally(() => this.#beginning.delete(start.id));
        if (begun.outcome !== "rerouted" || tries === reroutesMax) return { begun, init, procedure };
      }
      const latest = original?.acquirer ?? (await terminals.reread(partner.id, procedure.tid));
      // Its terminal may have been given another one because of that.
      if (why !== undefined && (latest === acquirer || tries === reroutesMax)) throw why;
      acquirer = latest;
    }
  }

  /**
   * Nothing is written for an acquirer that cannot be asked: the partner may use a terminal of another one. What has a
   * result already is answered all the same, and a REVERSAL is accepted, and sent later.
   */
  async #unreachable(
    partner: Partner,
    request: CommandRequest,
    { tid }: Procedure,
    acquirer: string,
  ): Promise<ServiceError | undefined> {
    const { acquirers, log } = this.#parts;
    // A transaction that does not exist needs no Reversal.
    const isUnknown = tid !== "" && !acquirers.has(acquirer);
    const why = request.command === "REVERSAL" || isUnknown ? undefined : await acquirers.of(acquirer).away?.();
    if (why === undefined && !isUnknown) return undefined;
    if ((await this.#findBegun(partner, request)) !== undefined) return undefined;
    if (why === undefined) return new ServiceError("no_acquirer");
    log.warn({ code: why.code, detail: why.detail }, "the acquirer of a command is away");
    return new ServiceError(why.code, undefined, { retryAfterS: 5 });
  }

  /**
   * The same has begun before: it is answered with its result, whatever has changed since of settings, devices,
   * terminals and acquirers.
   */
  async #findBegun({ id }: Partner, request: CommandRequest): Promise<TransactionId | undefined> {
    let bodyHash: Buffer;
    try {
      bodyHash = bodyHashOf(this.#parts.bodyKey, request);
    } catch {
      // Half of a surrogate pair has no canonical form: none such begins.
      return undefined;
    }
    return isUuid(request.reqId) ? this.#parts.transactions.findBegun(id, request.reqId, bodyHash) : undefined;
  }

  /** Why the acquirer of the terminal cannot take the token of a card; undefined when it can. */
  async refusesToken(partnerId: PartnerId, tid: string, token: string): Promise<string | undefined> {
    const { terminals, acquirers } = this.#parts;
    const refusal = acquirers.of(await terminals.of(partnerId, tid)).refusesToken(token);
    // The terminal may have another acquirer by now, without a notice.
    return refusal && acquirers.of(await terminals.reread(partnerId, tid)).refusesToken(token);
  }

  async #tokenProblem(partnerId: PartnerId, request: CommandRequest): Promise<FieldProblem | undefined> {
    if (!("card" in request)) return undefined;
    const message = await this.refusesToken(partnerId, request.tid, request.card.token);
    return message === undefined ? undefined : { field: "card.token", code: "unknown_test_card", message };
  }

  /** Ends what is in doubt, as {@link InDoubt.takeOver}. */
  takeOver(partnerOf: (id: PartnerId) => Promise<Partner | undefined>): Promise<number> {
    return this.#inDoubt.takeOver(partnerOf);
  }

  /**
   * Accepts no more commands, and resolves when nothing waits for the acquirer: running commands have ended, the
   * settlements are passed on after their current message, and the Reversals that were sent are answered.
   */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const handedOver = this.#parts.settler.stop().then(() => {
      this.#isHandedOver = true;
    });
    // Not only those that run: a command whose INIT is being written is accepted, and would find the link closed.
    await Promise.all([this.#slots.idle(), handedOver]);
    // Only now: a REVERSAL, and a command without an answer, need it until they have ended.
    await this.#parts.reverser.stop();
  }

  async #requireValid(partner: Partner, request: CommandRequest): Promise<void> {
    const { settings } = partner;
    const deviceId = "deviceId" in request ? (request.deviceId ?? "") : "";
    const isRegistered = () => this.#parts.isRegisteredDevice(partner.id, deviceId);
    const problems = [...(await exemptDevice(requestProblems(request, settings), isRegistered))];
    const callBackUrl = "callBackUrl" in request && request.callBackUrl ? request.callBackUrl : undefined;
    if (callBackUrl !== undefined) {
      const rules = { sandbox: this.#parts.sandbox };
      const problem = callbackUrlProblem("callBackUrl", callBackUrl, rules, settings);
      if (problem) problems.push(problem);
    }
    const tokenProblem = await this.#tokenProblem(partner.id, request);
    if (tokenProblem !== undefined) problems.push(tokenProblem);
    const [first, ...others] = problems;
    if (first) throw badFields([first, ...others]);
    if (request.command === "REFUND" && settings.refunds === "off") throw new ServiceError("refunds_off");
    if (
      isNotified(request.command, partner) &&
      callBackUrl === undefined &&
      registeredUrl(settings, request.command) === null
    ) {
      throw new ServiceError("no_callback_url");
    }
    if (this.#parts.acquirers.names().length === 0) throw new ServiceError("no_acquirer");
  }

  /**
   * The original of the command. A Reversal may name a command that has not arrived: it is recorded, and has no
   * original.
   */
  async #originalOf(partner: Partner, request: CommandRequest): Promise<Transaction | undefined> {
    const { transactions } = this.#parts;
    if ("transactionId" in request && request.transactionId) {
      const id = readId<"transaction">(request.transactionId);
      const original = id && (await transactions.find(partner.id, id));
      if (!original) throw new ServiceError("not_found", "There is no transaction with this transactionId.");
      return original;
    }
    if (request.command !== "REVERSAL" || !request.originalReqId) return undefined;
    const reqId = request.originalReqId.toLowerCase();
    const known = await transactions.findByReqId(partner.id, reqId);
    if (known !== undefined) return known;
    const arrived = await transactions.reverseBeforeArrival(partner.id, reqId);
    return arrived && transactions.find(partner.id, arrived);
  }

  async #repeat(
    partner: Partner,
    begun: { readonly sameBody: boolean; readonly id: TransactionId },
    respondAsync: boolean,
  ): Promise<CommandAnswer> {
    if (!begun.sameBody) {
      throw new ServiceError("req_id_reused", `This reqId belongs to ${begun.id}, which came with another body.`);
    }
    const ended = respondAsync ? undefined : await this.#awaitFirst(partner.id, begun.id);
    const transaction = ended ?? (await this.#parts.transactions.find(partner.id, begun.id));
    if (transaction === undefined) {
      throw new ServiceError("unavailable", "The first request is being undone.", { retryAfterS: 1 });
    }
    return { transaction, done: transaction.state !== "INIT" };
  }

  /** The outcome of a command that may still run, on this instance or another. */
  async #awaitFirst(partnerId: PartnerId, id: TransactionId): Promise<Transaction | undefined> {
    const running = this.#running.get(id);
    if (running === undefined) return this.#awaitEnd(partnerId, id, repeatWaitMs);
    return within(
      repeatWaitMs,
      running.catch(() => undefined),
    );
  }

  /** The transaction once it has ended, whichever instance ends it; undefined if it does not end in time, or is undone. */
  async #awaitEnd(
    partnerId: PartnerId,
    id: TransactionId,
    timeoutMs: number,
    isOver = () => false,
  ): Promise<Transaction | undefined> {
    const deadlineMs = this.#parts.clock.monotonicMs() + timeoutMs;
    for (let waitMs = pollMinMs; ; waitMs = Math.min(waitMs * 2, pollMaxMs)) {
      const transaction = await this.#parts.transactions.find(partnerId, id);
      if (transaction?.state !== "INIT") return transaction;
      if (isOver() || this.#parts.clock.monotonicMs() >= deadlineMs) return undefined;
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }

  async #execute(partner: Partner, begun: Transaction, procedure: Procedure): Promise<Transaction> {
    const startedMs = this.#parts.clock.monotonicMs();
    const ended = await this.#ended(partner, begun, procedure);
    const seconds = (this.#parts.clock.monotonicMs() - startedMs) / 1_000;
    this.#parts.metrics.commandSeconds.observe({ command: begun.command }, seconds);
    return ended;
  }

  async #ended(partner: Partner, begun: Transaction, procedure: Procedure): Promise<Transaction> {
    switch (procedure.askedBy) {
      case "ledger":
        return this.#authorise(partner, begun, procedure.message);
      case "settler":
        this.#parts.settler.wake();
        return this.#awaitSent(begun, () => this.#isHandedOver);
      case "reverser":
        return this.#partnerReversals.runUntilTaken(partner, begun, this.#stopping.signal);
    }
  }

  /** The settler or the reverser has it, on this instance or another. */
  async #awaitSent(begun: Transaction, isOver?: () => boolean): Promise<Transaction> {
    const waitMs = this.#parts.acquirerTimeoutMs + answerGraceMs;
    return (await this.#awaitEnd(begun.partnerId, begun.id, waitMs, isOver)) ?? begun;
  }

  async #authorise(partner: Partner, begun: Transaction, message: MessageOf): Promise<Transaction> {
    const leaseId = begun.runBy as LeaseId;
    const { lease } = this.#parts;
    // Without the lease, other instances may have reversed it already.
    const isOurs = lease.current() === leaseId || (await lease.isHeld(leaseId));
    const outcome = isOurs ? await this.#ask(begun, message) : notSent;
    const result = resultOf(begun, outcome, partner);
    try {
      const ended = await this.#parts.completer.complete(begun, result, leaseId);
      if (result.reversal) this.#parts.reverser.wake();
      if (ended !== undefined) {
        this.#reportDoubt(begun, outcome);
        return withChipAnswer(ended, outcome);
      }
      // It was reversed, or taken over, while the acquirer had it.
      if (outcome.kind === "answered") this.answeredLate(begun, outcome.answer);
      // It may have left only after its Reversal was answered.
      if (outcome.kind === "no_answer" && movesMoney(begun)) void this.#repeatReversal(begun);
      return (await this.find(begun.partnerId, begun.id)) ?? begun;
    } catch (error) {
      // A caller must not wait forever for a command whose result cannot be stored.
      this.#parts.log.error({ err: error, transaction: begun.id }, "the result of a command could not be stored");
      return (await this.#inDoubt.end(partner, begun, leaseId)) ?? begun;
    }
  }

  async #ask(begun: Transaction, message: MessageOf): Promise<AcquirerOutcome> {
    const { acquirers, log } = this.#parts;
    try {
      const asked = await this.#withCard(begun, message(begun.facts));
      const answer = await this.#askNotedSite(begun, asked);
      const allowPartial = "allowPartial" in asked && asked.allowPartial === true;
      return { kind: "answered", answer, approvals: acquirers.of(begun.acquirer).approvals, allowPartial };
    } catch (error) {
      if (error instanceof NotSent) return { kind: "not_sent" };
      if (!(error instanceof NoAnswer)) log.error({ err: error, transaction: begun.id }, "asking the acquirer failed");
      return { kind: "no_answer" };
    }
  }

  /** Whichever instance reverses it knows the host that got it: it is durable before the message leaves. */
  async #askNotedSite(begun: Transaction, message: AcquirerMessage): Promise<AcquirerAnswer> {
    const { acquirers, acquirerTimeoutMs: timeoutMs, transactions } = this.#parts;
    const onLateAnswer = (answer: LateAnswer) => this.answeredLate(begun, answer);
    for (let { site } = begun, tries = 1; ; tries += 1) {
      try {
        // Only now, because its link may have been replaced meanwhile.
        return await acquirers.of(begun.acquirer).ask(message, { timeoutMs, onLateAnswer, site });
      } catch (error) {
        if (!(error instanceof OtherSite) || tries === sitesMax) throw error;
        site = error.site;
      }
      const { partnerId, id, runBy } = begun;
      const isNoted = await transactions.redirect(partnerId, id, runBy as LeaseId, site).catch((error: unknown) => {
        throw new NotSent("The host of the message could not be noted", { cause: error });
      });
      if (!isNoted) throw new NotSent("The command has ended before its message left");
    }
  }

  /** A follow-up message carries the card if the acquirer wants it. */
  async #withCard(begun: Transaction, message: AcquirerMessage): Promise<AcquirerMessage> {
    if (begun.originalId === null) return message;
    try {
      return { ...message, ...(await this.#parts.cards.of(begun)) } as AcquirerMessage;
    } catch (error) {
      throw new NotSent("The card could not be read", { cause: error });
    }
  }

  /** Records a late answer. It changes no status and sends no IPN; an approval repeats the Reversal. */
  answeredLate(transaction: Transaction, { responseCode, isAmbiguous = false }: LateAnswer): void {
    const { acquirers, completer, metrics } = this.#parts;
    const approved = isAmbiguous || acquirers.of(transaction.acquirer).approvals.has(responseCode);
    metrics.lateAnswers.inc({ approved: String(approved) });
    completer.record(transaction, approved ? "late_approval" : "late_answer", { responseCode });
    if (approved && movesMoney(transaction)) void this.#repeatReversal(transaction);
  }

  /** The profile of the acquirer's host may lack a code. */
  #reportDoubt(begun: Transaction, outcome: AcquirerOutcome): void {
    if (outcome.kind !== "answered" || outcome.answer.isAmbiguous !== true || !movesMoney(begun)) return;
    this.#parts.completer.record(begun, "answer_in_doubt", { responseCode: outcome.answer.responseCode });
  }

  /** Nobody else knows that it may be charged since. So failures, such as an unavailable database, are retried. */
  async #repeatReversal({ partnerId, id }: Transaction): Promise<void> {
    const { reversals, reverser, log } = this.#parts;
    for (;;) {
      try {
        await reversals.repeat(partnerId, id);
        reverser.wake();
        return;
      } catch (error) {
        log.error({ err: error, transaction: id }, "a Reversal could not be repeated");
        if (this.#stopping.signal.aborted) return;
      }
      await new Promise((resolve) => setTimeout(resolve, reverseAgainMs));
    }
  }
}

function withChipAnswer(ended: Transaction, outcome: AcquirerOutcome): Transaction {
  const emv = outcome.kind === "answered" ? outcome.answer.emv : undefined;
  return emv === undefined ? ended : { ...ended, emv };
}

function movesMoney({ command }: Pick<Transaction, "command">): boolean {
  return command !== "LOGON";
}

function isNotified(command: string, { settings }: Partner): boolean {
  if (command === "REFUND") return settings.refunds === "notified";
  return notifiedCommands.some((notified) => notified === command);
}
