import { createHmac, type KeyObject } from "node:crypto";
import { canonicalJson, currencyDecimals } from "@paybell/contract";
import type { AcquirerMessage, Card, OriginalReference } from "../acquirer/acquirer.ts";
import { parseAmount } from "../commands/amount.ts";
import {
  beginFollowUp,
  beginSale,
  completeCard,
  type FollowUpRequest,
  followingAmountProblem,
  type TransactionStart,
} from "../commands/card-facts.ts";
import { type OriginalAsks, originalRefusal, type Refusal, refusalError } from "../commands/original.ts";
import type { AcquirerOutcome } from "../commands/outcome.ts";
import type {
  CommandRequest,
  ReversalRequest,
  SaleRequest,
  SettlementRequest,
  TerminalRequest,
} from "../commands/requests/request.ts";
import { beginReversal, succeedReversal } from "../commands/reversal.ts";
import { beginSettlement } from "../commands/settlement.ts";
import type { OriginalState } from "../commands/states.ts";
import { beginTerminalCommand, completeSystemCommand } from "../commands/system.ts";
import { type TerminalSequence, type TerminalState, terminalRefusal } from "../commands/terminal.ts";
import { badFields, ServiceError } from "../errors.ts";
import { chainOf, type LeaseId, type TransactionId } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import type { CommandResult } from "./completer.ts";
import { headerOf, referable, referenceTo } from "./exchange/acquirer-message.ts";
import type { CardVault } from "./exchange/card-vault.ts";
import type { Begun, Init, Transaction } from "./store.ts";

type Facts = Transaction["facts"];

/** The message of a command to the acquirer, by its facts at INIT. */
export type MessageOf = (begun: Facts) => AcquirerMessage;

/** Who asks the acquirer. */
type Asked = { readonly askedBy: "ledger"; readonly message: MessageOf } | { readonly askedBy: "settler" | "reverser" };

/** The parts of running one command: its terminal numbers, its preconditions, and who asks the acquirer. */
export type Procedure = Asked & Preparation;

interface Preparation extends Pick<Init, "tid" | "mid" | "takes" | "amountMinor" | "currency" | "refusal"> {
  readonly callBackUrl: string | null;
  /** Null for a command without a card. */
  readonly card: Card | null;
  begin(terminal: TerminalSequence): Facts;
}

export interface ProcedureContext {
  readonly start: TransactionStart;
  /** The original as it was found; it is checked again under lock. */
  readonly original: Transaction | undefined;
  readonly preAuthDays: number;
}

/** Of a command for a terminal as a whole. */
const withoutMoney = { callBackUrl: null, card: null, amountMinor: null, currency: null } as const;
const takesNumbers = { traceNo: true, invoiceNo: false, batch: false, settlement: null } as const;

/** @throws ServiceError `invalid_amount` if the amount does not fit the currency of the original. */
export function procedureFor(request: CommandRequest, context: ProcedureContext): Procedure {
  switch (request.command) {
    case "SALE":
    case "PREAUTH":
      return saleProcedure(request, context.start);
    case "VOID":
    case "PREAUTH_COMPLETE":
    case "REFUND":
      return followUpProcedure(request, context);
    case "SETTLEMENT":
      return settlementProcedure(request, context.start);
    case "REVERSAL":
      return reversalProcedure(request, context);
    case "LOGON":
    case "BATCH_UPLOAD":
      return terminalProcedure(request, context.start);
  }
}

function saleProcedure(request: SaleRequest, start: TransactionStart): Procedure {
  const { command, tid, mid, currency, allowPartial = false } = request;
  const { token: cardToken, swipeType = "", expiry: expDate = "" } = request.card;
  const { sequenceNumber = "", track2 = "", pinBlock = "", emv = "" } = request.card;
  const card = { cardToken, swipeType, expDate };
  const entersBatch = command === "SALE";
  const amountMinor = parseAmount(request.amount, currencyDecimals(currency) ?? 0);
  return {
    tid,
    mid,
    callBackUrl: given(request.callBackUrl),
    takes: { ...takesNumbers, invoiceNo: true, batch: entersBatch },
    amountMinor,
    currency,
    card,
    refusal: onTerminal({ mid, entersBatchWith: entersBatch ? currency : null, money: true }),
    begin: (terminal) => beginSale(request, terminal, start),
    askedBy: "ledger",
    message: (begun) => ({
      command,
      ...numbersOf(begun),
      amountMinor,
      currency,
      allowPartial,
      ...card,
      ...{ sequenceNumber, track2, pinBlock, emv },
    }),
  };
}

function followUpProcedure(request: FollowUpRequest, context: ProcedureContext): Procedure {
  const { start, original } = context;
  const { command } = request;
  const { tid, mid, otherMid, elsewhere, amountMinor, currency } = followUpPlace(request, original);
  const voidsPreAuth = command === "VOID" && original?.command === "PREAUTH";
  return {
    tid,
    mid,
    callBackUrl: given(request.callBackUrl),
    card: null,
    takes: { ...takesNumbers, invoiceNo: command === "REFUND" || otherMid !== null, batch: !voidsPreAuth },
    amountMinor,
    currency,
    refusal: (terminal, state) =>
      refusalBy(original, state, { command, amountMinor, context }) ??
      onTerminal({
        mid: otherMid,
        acquirer: voidsPreAuth ? undefined : original?.acquirer,
        entersBatchWith: command === "VOID" ? null : currency,
        money: true,
      })(terminal),
    begin: (terminal) => beginFollowUp(request, cardOf(original), terminal, start, elsewhere(terminal)),
    askedBy: "ledger",
    message: (begun) => ({
      command,
      ...numbersOf(begun),
      amountMinor: amountMinor ?? 0n,
      currency: currency ?? "",
      original: originalReference(original),
    }),
  };
}

function settlementProcedure(request: SettlementRequest, start: TransactionStart): Procedure {
  const { tid, mid } = request;
  return {
    ...withoutMoney,
    tid,
    mid,
    callBackUrl: given(request.callBackUrl),
    takes: { ...takesNumbers, settlement: "SETTLEMENT" },
    refusal: onTerminal({ mid, entersBatchWith: null, money: true, settles: true }),
    begin(terminal) {
      // The settlement IPN's table has no traceNo, but the acquirer is asked under it, also by an instance that takes
      // over.
      const facts = beginSettlement(request, terminal, start);
      return { ...facts, fields: { ...facts.fields, traceNo: terminal.traceNo } };
    },
    askedBy: "settler",
  };
}

function reversalProcedure(request: ReversalRequest, context: ProcedureContext): Procedure {
  const { start, original } = context;
  const { tid, mid, ...money } = placeOf(original);
  const reversed = original && { id: original.id, tid, mid, traceNo: original.facts.fields["traceNo"] ?? "" };
  return {
    ...withoutMoney,
    ...money,
    tid,
    mid,
    takes: { ...takesNumbers, traceNo: false },
    refusal: (_, state) => refusalBy(undefined, state, { command: "REVERSAL", amountMinor: null, context }),
    begin: () => beginReversal(request, reversed, start),
    askedBy: "reverser",
  };
}

function terminalProcedure(request: TerminalRequest, start: TransactionStart): Procedure {
  const { command, tid, mid } = request;
  const uploads = command === "BATCH_UPLOAD";
  return {
    ...withoutMoney,
    tid,
    mid,
    takes: { ...takesNumbers, settlement: uploads ? "BATCH_UPLOAD" : null },
    // An upload during a settlement would upload what is being counted.
    refusal: onTerminal({ mid, entersBatchWith: null, money: uploads, settles: uploads }),
    begin: (terminal) => beginTerminalCommand(request, terminal, start),
    ...(uploads
      ? { askedBy: "settler" }
      : { askedBy: "ledger", message: (begun) => ({ command: "LOGON", ...headerOf(begun.fields) }) }),
  };
}

/** The result of a command for this outcome, whichever instance began it. */
export function resultOf(
  begun: Transaction,
  outcome: AcquirerOutcome,
  partner: Partner,
  requestedBy: Transaction["id"] | null = null,
): CommandResult {
  const { facts, command } = begun;
  if (facts.kind === "system") return completeSystemCommand(facts, outcome);
  if (facts.kind === "settlement") throw new Error("A SETTLEMENT is not authorised.");
  const { reverse, ...completed } = completeCard(facts, outcome, partner.settings.signing);
  const result = { ...completed, reversal: reverse ? reversalOf(begun, requestedBy) : null };
  if (command === "REFUND") return { ...result, silent: partner.settings.refunds !== "notified" };
  if (command !== "VOID" && command !== "PREAUTH_COMPLETE") return result;
  const failed = reverse ? ("in_doubt" as const) : ("free" as const);
  const becomes = result.state === "SUCCESS" ? ("done" as const) : failed;
  return { ...result, original: begun.originalId === null ? null : { id: begun.originalId, becomes } };
}

/** The result of the partner's own REVERSAL for the end of the Reversal. */
export function reversalResult(
  { facts, originalId }: Transaction,
  end: { readonly state: "DONE" | "PARKED"; readonly responseCode: string },
): CommandResult {
  if (facts.kind !== "system") throw new Error("A REVERSAL is a system command.");
  const answer = { responseCode: end.responseCode, approveCode: "", refId: "", tc: "" };
  const { state, facts: completed } =
    end.state === "DONE"
      ? succeedReversal(facts)
      : completeSystemCommand(facts, { kind: "answered", answer, approvals: new Set() });
  const becomes = state === "SUCCESS" ? ("done" as const) : ("in_doubt" as const);
  return { state, facts: completed, original: originalId === null ? null : { id: originalId, becomes } };
}

function reversalOf({ facts }: Transaction, requestedBy: Transaction["id"] | null) {
  return { tid: facts.fields["tid"] ?? "", requestedBy };
}

function onTerminal(asks: Parameters<typeof terminalRefusal>[1]) {
  return (terminal: TerminalState | undefined): Refusal | undefined =>
    terminal === undefined ? undefined : terminalRefusal(terminal, asks);
}

/**
 * Why the locked original does not allow the command. One that ended since it was found still counts as in flight,
 * because its successor inherits fields that came with its end. A REVERSAL inherits nothing.
 */
function refusalBy(
  found: Transaction | undefined,
  state: OriginalState | undefined,
  asks: Pick<OriginalAsks, "command"> & { readonly amountMinor: bigint | null; readonly context: ProcedureContext },
): Refusal | undefined {
  if (state === undefined) return undefined;
  const { command, amountMinor, context } = asks;
  const { start, preAuthDays } = context;
  const known = found?.state === "INIT" ? { ...state, state: found.state } : state;
  return originalRefusal(known, { command, amountMinor: amountMinor ?? 0n, nowMs: start.atMs, preAuthDays });
}

/** The terminal and money of an original, for follow-up commands there. */
function placeOf(original: Transaction | undefined) {
  const { tid = "", mid = "" } = original?.facts.fields ?? {};
  return { tid, mid, amountMinor: original?.amountMinor ?? null, currency: original?.currency ?? null };
}

/**
 * The terminal of a follow-up, which is the one that it names, otherwise its original's, and its money: a Void's is its
 * original's.
 *
 * @throws ServiceError `invalid_amount` if the amount does not fit the original's currency
 */
function followUpPlace(request: FollowUpRequest, original: Transaction | undefined) {
  const place = placeOf(original);
  if (request.command === "VOID") return { ...place, otherMid: null, elsewhere: () => undefined };
  const { mid, currency } = place;
  const tid = given(request.tid) ?? place.tid;
  const isElsewhere = tid !== place.tid;
  const problem = currency === null ? undefined : followingAmountProblem(request.amount, currency);
  if (problem !== undefined) throw badFields([problem]);
  return {
    tid,
    mid,
    amountMinor: currency === null ? 0n : parseAmount(request.amount, currencyDecimals(currency) ?? 0),
    currency: currency ?? "",
    /** The other terminal must belong to the same merchant. */
    otherMid: isElsewhere ? mid : null,
    elsewhere: ({ deviceId, appName }: TerminalSequence) => (isElsewhere ? { tid, deviceId, appName } : undefined),
  };
}

function cardOf(original: Transaction | undefined) {
  if (original?.facts.kind !== "card") throw new Error("Only a card transaction has a successor.");
  return original.facts;
}

function originalReference(original: Transaction | undefined): OriginalReference {
  if (original === undefined) throw new Error("What has no original refers to none.");
  return referenceTo(referable(original.command), original.facts.fields);
}

function numbersOf({ fields }: Facts) {
  return { ...headerOf(fields), invoiceNo: fields["invoiceNo"] ?? "", batchNo: fields["batchNo"] ?? "" };
}

/** An empty string counts as absent. */
function given(text: string | undefined): string | null {
  return text === undefined || text === "" ? null : text;
}

export interface InitParts {
  readonly cards: CardVault;
  /** The key for comparing bodies. With a plain hash a reader of the row could guess the card's token. */
  readonly bodyKey: KeyObject;
  readonly sandbox: boolean;
  readonly claimsMax: number;
}

export interface InitStart {
  readonly id: TransactionId;
  readonly leaseId: LeaseId;
  readonly acquirer: string;
  readonly site: string | null;
  readonly procedure: Procedure;
  readonly original: Transaction | undefined;
}

export function toInit(
  { bodyKey, cards, sandbox, claimsMax }: InitParts,
  partner: Partner,
  request: CommandRequest,
  start: InitStart,
): Init {
  const { id, leaseId, acquirer, site, procedure, original } = start;
  const reqId = request.reqId.toLowerCase();
  const { tid, mid, takes, amountMinor, currency, card, callBackUrl, refusal } = procedure;
  const chainId = chainOf(id, original);
  return {
    partnerId: partner.id,
    id,
    leaseId,
    command: request.command,
    reqId,
    bodyHash: createHmac("sha256", bodyKey)
      .update(canonicalJson({ ...request, reqId }))
      .digest(),
    originalId: original?.id ?? null,
    chainId,
    tid,
    mid,
    callBackUrl,
    openTerminals: partner.settings.terminals === "open",
    sharesTerminals: sandbox,
    claimsMax,
    takes,
    amountMinor,
    currency,
    acquirer,
    site,
    sealedCard: card && cards.seal({ partnerId: partner.id, chainId, acquirer }, card),
    refusal,
    facts: (terminal) => procedure.begin(terminal),
  };
}

export function refusedBy(
  begun: Exclude<Begun, { outcome: "begun" | "repeated" }>,
  { tid, reqId }: Init,
): ServiceError {
  if (begun.outcome === "refused") return refusalError(begun.refusal);
  if (begun.outcome === "reversed_before_arrival") {
    const detail = `A REVERSAL of the reqId ${reqId} came before the command, which was not sent to the acquirer.`;
    return new ServiceError("reversed_before_arrival", detail);
  }
  if (begun.outcome === "rerouted") {
    return new ServiceError("unavailable", `tid ${tid} is being given another acquirer.`, { retryAfterS: 1 });
  }
  if (begun.outcome === "terminal_taken") {
    return new ServiceError("terminal_taken", `tid ${tid} with this mid is another partner's terminal.`);
  }
  if (begun.outcome === "terminal_quota") {
    const message = `tid ${tid} is new, and you use as many terminals without a registration as you may.`;
    return new ServiceError("too_many_terminals", message);
  }
  return new ServiceError("terminal_not_registered", `tid ${tid} is not registered.`);
}

export function toTransaction(init: Init, facts: Transaction["facts"], createdAtMs: number): Transaction {
  const { partnerId, id, command, reqId, originalId, chainId, callBackUrl, amountMinor, currency, acquirer, site } =
    init;
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
    amountMinor,
    currency,
    acquirer,
    site,
    batch: null,
    reversal: null,
    facts,
    notification: null,
    runBy: init.leaseId,
    createdAtMs,
    completedAtMs: null,
  };
}
