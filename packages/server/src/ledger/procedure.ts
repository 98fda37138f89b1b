import { currencyDecimals } from "@paybell/contract";
import type { AcquirerMessage, Card, OriginalReference } from "../acquirer/acquirer.ts";
import { parseAmount } from "../commands/amount.ts";
import {
  beginFollowUp,
  beginSale,
  type FollowUpRequest,
  followingAmountProblem,
  type TransactionStart,
} from "../commands/card-facts.ts";
import { type OriginalAsks, originalRefusal, type Refusal } from "../commands/original.ts";
import {
  type CommandRequest,
  given,
  type ReversalRequest,
  type SaleRequest,
  type SettlementRequest,
  type TerminalRequest,
} from "../commands/requests/request.ts";
import { beginReversal } from "../commands/reversal.ts";
import { beginSettlement } from "../commands/settlement.ts";
import type { OriginalState } from "../commands/states.ts";
import { beginTerminalCommand } from "../commands/system.ts";
import { type TerminalSequence, type TerminalState, terminalRefusal } from "../commands/terminal.ts";
import { badFields } from "../errors.ts";
import { headerOf, referable, referenceTo } from "./exchange/acquirer-message.ts";
import type { Init, Transaction } from "./store.ts";

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
    callBackUrl: given(request.callBackUrl) ?? null,
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
  const { tid, mid, isElsewhere, amountMinor, currency } = followUpPlace(request, original);
  const voidsPreAuth = command === "VOID" && original?.command === "PREAUTH";
  return {
    tid,
    mid,
    callBackUrl: given(request.callBackUrl) ?? null,
    card: null,
    takes: { ...takesNumbers, invoiceNo: command === "REFUND" || isElsewhere, batch: !voidsPreAuth },
    amountMinor,
    currency,
    refusal: (terminal, state) =>
      refusalBy(original, state, { command, amountMinor, context }) ??
      onTerminal({
        // What enters a terminal's batch is settled under the terminal's mid, which may have changed since.
        mid: command === "VOID" ? null : mid,
        acquirer: voidsPreAuth ? undefined : original?.acquirer,
        entersBatchWith: command === "VOID" ? null : currency,
        money: true,
      })(terminal),
    begin(terminal) {
      const { deviceId, appName } = terminal;
      return beginFollowUp(
        request,
        cardOf(original),
        terminal,
        start,
        isElsewhere ? { tid, deviceId, appName } : undefined,
      );
    },
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
    callBackUrl: given(request.callBackUrl) ?? null,
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
  const { tid, mid, amountMinor, currency } = placeOf(original);
  const reversed = original && { id: original.id, tid, mid, traceNo: original.facts.fields["traceNo"] ?? "" };
  return {
    ...withoutMoney,
    tid,
    mid,
    amountMinor,
    currency,
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

function onTerminal(asks: Parameters<typeof terminalRefusal>[1]) {
  return (terminal: TerminalState | undefined): Refusal | undefined => terminalRefusal(terminal, asks);
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

/** Where a command counts, and its money. */
interface Place extends Pick<Init, "tid" | "mid" | "amountMinor" | "currency"> {
  /** The command names another terminal than its original's. */
  readonly isElsewhere: boolean;
}

function placeOf(original: Transaction | undefined): Place {
  const { tid = "", mid = "" } = original?.facts.fields ?? {};
  const money = { amountMinor: original?.amountMinor ?? null, currency: original?.currency ?? null };
  return { tid, mid, ...money, isElsewhere: false };
}

/**
 * The terminal of a follow-up is the one that it names, otherwise its original's. A Void's money is its original's.
 *
 * @throws ServiceError `invalid_amount` if the amount does not fit the original's currency
 */
function followUpPlace(request: FollowUpRequest, original: Transaction | undefined): Place {
  const place = placeOf(original);
  if (request.command === "VOID") return place;
  const { mid, currency } = place;
  const tid = given(request.tid) ?? place.tid;
  const problem = currency === null ? undefined : followingAmountProblem(request.amount, currency);
  if (problem !== undefined) throw badFields([problem]);
  const amountMinor = currency === null ? 0n : parseAmount(request.amount, currencyDecimals(currency) ?? 0);
  return { tid, mid, amountMinor, currency: currency ?? "", isElsewhere: tid !== place.tid };
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
