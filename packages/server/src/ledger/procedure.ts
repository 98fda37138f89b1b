import { currencyDecimals } from "@paybell/contract";
import type { AcquirerMessage } from "../acquirer/acquirer.ts";
import { parseAmount } from "../commands/amount.ts";
import { beginLogon, completeLogon, type LogonFacts } from "../commands/logon.ts";
import type { Outcome } from "../commands/outcome.ts";
import type { CommandRequest, SaleRequest, TerminalRequest } from "../commands/request.ts";
import { beginSale, completeSale, type SaleFacts, type TransactionStart } from "../commands/sale.ts";
import { type FieldProblem, PaybellError } from "../errors.ts";
import type { IpnFacts } from "../ipn/facts.ts";
import type { Partner } from "../partners/partner.ts";
import type { Init, TerminalTurn } from "./store.ts";
import type { SystemFacts } from "./transaction.ts";

type Facts = IpnFacts | SystemFacts;

/** How one command is run: what it takes from its terminal, what the acquirer is asked, what its outcome means. */
export interface Procedure {
  readonly tid: string;
  readonly mid: string;
  readonly callBackUrl: string | null;
  readonly takes: Init["takes"];
  readonly amountMinor: bigint | null;
  readonly currency: string | null;
  begin(terminal: TerminalTurn): Facts;
  message(begun: Facts): AcquirerMessage;
}

export interface Completed {
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: Facts;
  readonly warnings: readonly FieldProblem[];
}

/** @throws PaybellError `command_not_available` for a command that only a switch can report yet. */
export function procedureFor(request: CommandRequest, start: TransactionStart): Procedure {
  switch (request.command) {
    case "SALE":
      return saleProcedure(request, start);
    case "LOGON":
      return logonProcedure(request, start);
    default:
      throw new PaybellError("command_not_available", `${request.command} is not processed here.`);
  }
}

function saleProcedure(request: SaleRequest, start: TransactionStart): Procedure {
  const amountMinor = parseAmount(request.amount, currencyDecimals(request.currency) ?? 0);
  return {
    tid: request.tid,
    mid: request.mid,
    callBackUrl: request.callBackUrl ? request.callBackUrl : null,
    takes: { invoiceNo: true, batchNo: true },
    amountMinor,
    currency: request.currency,
    begin: (terminal) => beginSale(request, terminal, start),
    message: ({ fields }) => ({
      command: request.command,
      transactionId: start.id,
      tid: request.tid,
      mid: request.mid,
      traceNo: fields["traceNo"] ?? "",
      repeat: false,
      invoiceNo: fields["invoiceNo"] ?? "",
      batchNo: fields["batchNo"] ?? "",
      amountMinor,
      currency: request.currency,
      cardToken: request.card.token,
    }),
  };
}

function logonProcedure(request: TerminalRequest, start: TransactionStart): Procedure {
  return {
    tid: request.tid,
    mid: request.mid,
    callBackUrl: null,
    takes: { invoiceNo: false, batchNo: false },
    amountMinor: null,
    currency: null,
    begin: (terminal) => beginLogon(request, terminal, start),
    message: ({ fields }) => ({
      command: "LOGON",
      transactionId: start.id,
      tid: request.tid,
      mid: request.mid,
      traceNo: fields["traceNo"] ?? "",
      repeat: false,
    }),
  };
}

/** What an outcome makes of a command that was begun, by whichever instance. */
export function complete(begun: Facts, outcome: Outcome, partner: Partner): Completed {
  if (begun.kind === "system") return completeLogon(begun satisfies LogonFacts, outcome);
  if (begun.kind === "settlement") throw new Error("A settlement is not completed by an authorisation.");
  return completeSale(begun as SaleFacts, outcome, partner.settings.signing);
}
