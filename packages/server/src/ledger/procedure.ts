import { currencyDecimals } from "@paybell/contract";
import type { AcquirerMessage, Card, OriginalReference } from "../acquirer/acquirer.ts";
import { parseAmount } from "../commands/amount.ts";
import { completeCard } from "../commands/complete-card.ts";
import {
  completeRefusal,
  type OriginalState,
  type Refusal,
  refundRefusal,
  reversalRefusal,
  voidRefusal,
} from "../commands/original.ts";
import type { AcquirerOutcome } from "../commands/outcome.ts";
import { beginPreAuthComplete, followingAmountProblem } from "../commands/preauth-complete.ts";
import { beginRefund } from "../commands/refund.ts";
import type {
  CommandRequest,
  PreAuthCompleteRequest,
  RefundRequest,
  ReversalRequest,
  SaleRequest,
  SettlementRequest,
  TerminalRequest,
  VoidRequest,
} from "../commands/request.ts";
import { beginReversal, succeedReversal } from "../commands/reversal.ts";
import { beginSale, type TransactionStart } from "../commands/sale.ts";
import { beginSettlement } from "../commands/settlement.ts";
import { beginTerminalCommand, completeSystemCommand } from "../commands/system.ts";
import { type TerminalSequence, type TerminalState, terminalRefusal } from "../commands/terminal.ts";
import { beginVoid } from "../commands/void.ts";
import { badFields } from "../errors.ts";
import type { Partner } from "../partners/partner.ts";
import { headerOf, referable, referenceTo } from "./acquirer-message.ts";
import type { CommandResult } from "./completer.ts";
import type { Init } from "./store.ts";
import type { Transaction } from "./transaction.ts";

type Facts = Transaction["facts"];

/** The parts of running one command: its terminal numbers, its preconditions, and the function that runs it. */
export interface Procedure extends Pick<Init, "tid" | "mid" | "takes" | "amountMinor" | "currency" | "refusal"> {
  readonly callBackUrl: string | null;
  /** Null for a command without a card. */
  readonly card: Card | null;
  begin(terminal: TerminalSequence): Facts;
  /** The message to the acquirer; undefined if the settler or the reverser sends it. */
  readonly message: ((begun: Facts) => AcquirerMessage) | undefined;
}

export interface ProcedureContext {
  readonly start: TransactionStart;
  /** The original as it was found; it is checked again under lock. */
  readonly original: Transaction | undefined;
  readonly preAuthDays: number;
}

const takesNumbers = { traceNo: true, invoiceNo: false, batch: false, settlement: null } as const;

/** @throws ServiceError `invalid_amount` if the amount does not fit the currency of the original. */
export function procedureFor(request: CommandRequest, context: ProcedureContext): Procedure {
  switch (request.command) {
    case "SALE":
    case "PREAUTH":
      return saleProcedure(request, context.start);
    case "VOID":
      return voidProcedure(request, context);
    case "PREAUTH_COMPLETE":
      return completeProcedure(request, context);
    case "REFUND":
      return refundProcedure(request, context);
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

function voidProcedure(request: VoidRequest, { start, original }: ProcedureContext): Procedure {
  const { tid, mid, money } = placeOf(original);
  const voidsPreAuth = original?.command === "PREAUTH";
  return {
    tid,
    mid,
    callBackUrl: given(request.callBackUrl),
    card: null,
    takes: { ...takesNumbers, batch: !voidsPreAuth },
    ...money,
    refusal: (terminal, state) =>
      judged(asFound(state, original), voidRefusal) ??
      onTerminal({
        mid: null,
        acquirer: voidsPreAuth ? undefined : original?.acquirer,
        entersBatchWith: null,
        money: true,
      })(terminal),
    begin: (terminal) => beginVoid(request, cardOf(original), terminal, start, { voidsPreAuth }),
    message: (begun) => ({
      command: "VOID",
      ...numbersOf(begun),
      amountMinor: money.amountMinor ?? 0n,
      currency: money.currency ?? "",
      original: originalReference(original),
    }),
  };
}

function completeProcedure(request: PreAuthCompleteRequest, context: ProcedureContext): Procedure {
  const { start, original, preAuthDays } = context;
  const { tid, mid, otherMid, elsewhere, ...money } = followingPlace(request, original);
  return {
    tid,
    mid,
    callBackUrl: given(request.callBackUrl),
    card: null,
    takes: { ...takesNumbers, invoiceNo: otherMid !== null, batch: true },
    ...money,
    refusal: (terminal, state) =>
      judged(asFound(state, original), (known) => completeRefusal(known, money.amountMinor, start.atMs, preAuthDays)) ??
      onTerminal({ mid: otherMid, acquirer: original?.acquirer, entersBatchWith: money.currency, money: true })(
        terminal,
      ),
    begin: (terminal) => beginPreAuthComplete(request, cardOf(original), terminal, start, elsewhere(terminal)),
    message: (begun) => ({
      command: "PREAUTH_COMPLETE",
      ...numbersOf(begun),
      ...money,
      original: originalReference(original),
    }),
  };
}

function refundProcedure(request: RefundRequest, { start, original }: ProcedureContext): Procedure {
  const { tid, mid, otherMid, elsewhere, ...money } = followingPlace(request, original);
  return {
    tid,
    mid,
    callBackUrl: given(request.callBackUrl),
    card: null,
    takes: { ...takesNumbers, invoiceNo: true, batch: true },
    ...money,
    refusal: (terminal, state) =>
      judged(state, (known) => refundRefusal(known, money.amountMinor)) ??
      onTerminal({ mid: otherMid, acquirer: original?.acquirer, entersBatchWith: money.currency, money: true })(
        terminal,
      ),
    begin: (terminal) => beginRefund(request, cardOf(original), terminal, start, elsewhere(terminal)),
    message: (begun) => ({ command: "REFUND", ...numbersOf(begun), ...money, original: originalReference(original) }),
  };
}

function settlementProcedure(request: SettlementRequest, start: TransactionStart): Procedure {
  const { tid, mid } = request;
  return {
    tid,
    mid,
    callBackUrl: given(request.callBackUrl),
    card: null,
    takes: { ...takesNumbers, settlement: "SETTLEMENT" },
    amountMinor: null,
    currency: null,
    refusal: onTerminal({ mid, entersBatchWith: null, money: true, settles: true }),
    begin(terminal) {
      // The settlement IPN's table has no traceNo, but the acquirer is asked under it, also by an instance that takes
      // over.
      const facts = beginSettlement(request, terminal, start);
      return { ...facts, fields: { ...facts.fields, traceNo: terminal.traceNo } };
    },
    message: undefined,
  };
}

function reversalProcedure(request: ReversalRequest, { start, original }: ProcedureContext): Procedure {
  const { tid, mid, money } = placeOf(original);
  const reversed = original && { id: original.id, tid, mid, traceNo: original.facts.fields["traceNo"] ?? "" };
  return {
    tid,
    mid,
    callBackUrl: null,
    card: null,
    takes: { traceNo: false, invoiceNo: false, batch: false, settlement: null },
    ...money,
    refusal: (_terminal, state) => judged(state, reversalRefusal),
    begin: () => beginReversal(request, reversed, start),
    message: undefined,
  };
}

function terminalProcedure(request: TerminalRequest, start: TransactionStart): Procedure {
  const { command, tid, mid } = request;
  const uploads = command === "BATCH_UPLOAD";
  return {
    tid,
    mid,
    callBackUrl: null,
    card: null,
    takes: { ...takesNumbers, settlement: uploads ? "BATCH_UPLOAD" : null },
    amountMinor: null,
    currency: null,
    // An upload during a settlement would upload what is being counted.
    refusal: onTerminal({ mid, entersBatchWith: null, money: uploads, settles: uploads }),
    begin: (terminal) => beginTerminalCommand(request, terminal, start),
    message: uploads ? undefined : (begun) => ({ command: "LOGON", ...headerOf(begun.fields) }),
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
 * An original that ended since it was found still counts as in flight: its successor inherits fields that came with its
 * end.
 */
function asFound(state: OriginalState | undefined, found: Transaction | undefined): OriginalState | undefined {
  return state && found?.state === "INIT" ? { ...state, state: found.state } : state;
}

function judged(state: OriginalState | undefined, judge: (state: OriginalState) => Refusal | undefined) {
  return state === undefined ? undefined : judge(state);
}

/** The terminal and batch of an original, for follow-up commands there. */
function placeOf(original: Transaction | undefined) {
  const fields = original?.facts.fields ?? {};
  const money = { amountMinor: original?.amountMinor ?? null, currency: original?.currency ?? null };
  return { tid: fields["tid"] ?? "", mid: fields["mid"] ?? "", money };
}

/**
 * The terminal of a PreAuth-Complete or Refund: the one that it names, otherwise its original's.
 *
 * @throws ServiceError `invalid_amount` if the amount does not fit the original's currency
 */
function followingPlace(
  { tid: named, amount }: { readonly tid?: string | undefined; readonly amount: string },
  original: Transaction | undefined,
) {
  const { tid: originalTid, mid, money } = placeOf(original);
  const tid = given(named) ?? originalTid;
  const isElsewhere = tid !== originalTid;
  const currency = money.currency ?? "";
  const problem = currency === "" ? undefined : followingAmountProblem(amount, currency);
  if (problem !== undefined) throw badFields([problem]);
  return {
    tid,
    mid,
    amountMinor: currency === "" ? 0n : parseAmount(amount, currencyDecimals(currency) ?? 0),
    currency,
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
