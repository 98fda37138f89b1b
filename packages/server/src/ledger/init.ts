import { createHmac, type KeyObject } from "node:crypto";
import { canonicalJson } from "@paybell/contract";
import { refusalError } from "../commands/original.ts";
import type { CommandRequest } from "../commands/requests/request.ts";
import { badFields, ServiceError } from "../errors.ts";
import { chainOf, type LeaseId, type TransactionId } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import type { CardVault } from "./exchange/card-vault.ts";
import type { Procedure } from "./procedure.ts";
import type { Begun, Init, Transaction } from "./store.ts";

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

/** What a repeated command is recognised by. */
export function bodyHashOf(bodyKey: KeyObject, request: CommandRequest): Buffer {
  const body = canonicalJson({ ...request, reqId: request.reqId.toLowerCase() });
  return createHmac("sha256", bodyKey).update(body).digest();
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
    bodyHash: bodyHashOf(bodyKey, request),
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
    return new ServiceError("unavailable", `tid ${tid} is being given another acquirer, or its own is being removed.`, {
      retryAfterS: 1,
    });
  }
  if (begun.outcome === "terminal_padded") {
    const { field } = begun;
    return badFields([{ field, code: "invalid_value", message: `${field} must not end in a space.` }]);
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
