import {
  type CardIpn,
  commands,
  type Field,
  type IpnKind,
  ipnFields,
  settlementListFields,
  statuses,
  type UnsignedIpn,
} from "@paybell/contract";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { refusalCodes } from "../../commands/original.ts";
import { reversalStates } from "../../commands/states.ts";
import type { SystemFacts } from "../../commands/system.ts";
import { badFields, ServiceError } from "../../errors.ts";
import { readId } from "../../ids.ts";
import { component, described } from "../../input/descriptions.ts";
import { everyProblemOfCommand } from "../../input/every-problem.ts";
import { commandSchema } from "../../input/shapes.ts";
import type { CardFacts } from "../../ipn/facts.ts";
import { renderIpn } from "../../ipn/render.ts";
import type { Transaction } from "../../ledger/store.ts";
import { notificationStates, registeredUrl } from "../../notification.ts";
import type { Partner, PartnerSettings } from "../../partners/partner.ts";
import type { HttpDependencies } from "../dependencies.ts";
import { prefersAsync } from "../limits/rate-limits.ts";
import { answer, operations, type PartnerRoutes, responses } from "../operation.ts";
import { noSuch } from "../parameters.ts";
import { partner, partnerReads } from "../policy.ts";

const operation = operations("Commands");
const transactionOperation = operations("Transactions");

const beside = {
  command: z.enum(commands),
  createdAt: described(z.iso.datetime(), "When the command arrived"),
  notification: z.object({ id: z.uuid(), state: z.enum(notificationStates) }).nullable(),
  emv: described(z.string(), "What the issuer answered to the chip: in the answer to the command alone").optional(),
};

function viewSchema(kind: IpnKind) {
  const fields = ipnFields(kind).filter(({ name }) => name !== "signature");
  const properties = Object.fromEntries(fields.map((field) => [field.name, fieldOf(field)]));
  // Open: each part of an intersection must allow the fields of the others.
  return z.looseObject({
    ...properties,
    status: described(z.enum(statuses), "INIT while the outcome is not known"),
    ...beside,
  });
}

function fieldOf(field: Field): z.ZodType {
  if (field.type === "string") return described(z.string(), field.meaning);
  const entry = z.object(Object.fromEntries(settlementListFields.map(({ name }) => [name, z.string()])));
  return described(z.array(entry), field.meaning);
}

/** A transaction as answered: its IPN's table without signature, every field present, empty where unknown. */
export const transactionSchema = component(
  z.union([
    component(viewSchema("card"), "CardTransaction", "The card IPN's fields (section 2.2) without signature"),
    component(
      viewSchema("settlement").extend({
        isoResponseCode: described(z.string(), "What the acquirer answered; its IPN has no field for it"),
        refId: described(z.string(), "The acquirer's reference of the settlement; its IPN has no field for it"),
        settlementDate: described(
          z.string(),
          "The day on which the money moves, as the acquirer gave it (MMDD); empty where it gave none",
        ),
      }),
      "SettlementTransaction",
      "The settlement IPN's fields (section 2.3) without signature, and the acquirer's answer",
    ),
  ]),
  "Transaction",
  "A transaction: a Settlement has the settlement IPN's fields, every other command the card IPN's",
);

const link = z.object({
  id: z.uuid(),
  command: z.enum(commands),
  status: z.enum(statuses),
  isoResponseCode: z.string(),
  amount: z.string(),
  createdAt: z.iso.datetime(),
});

/** A transaction asked for by its id or reqId. */
const transactionDetailSchema = component(
  z.intersection(
    transactionSchema,
    z.looseObject({
      batch: described(
        z.object({ batchNo: z.string(), state: z.enum(["open", "closing", "closed"]) }).nullable(),
        "The batch it belongs to, or settles; null for a PreAuth, a system command, and what a switch reported",
      ),
      reversal: described(
        z.enum(reversalStates).nullable(),
        "The state of its own Reversal; `done` too if a switch reported one that succeeded",
      ),
      chain: described(z.array(link), "The first transaction and all that refer to it, in order"),
    }),
  ),
  "TransactionDetail",
  "A transaction with its batch, its Reversal and its chain",
);

const commandErrors = [
  "invalid_amount",
  "invalid_currency",
  "invalid_req_id",
  "invalid_callback_url",
  "insecure_callback_url",
  "address_not_whitelisted",
  "delimiter_in_signed_field",
  "invalid_text",
  "card_number_in_clear",
  "invalid_card_number",
  "aid_required",
  "scheme_contradicts_aid",
  "unknown_test_card",
  "not_found",
  "req_id_reused",
  "terminal_not_registered",
  "terminal_taken",
  "too_many_terminals",
  "no_callback_url",
  "reversed_before_arrival",
  "refunds_off",
  ...refusalCodes,
  "no_acquirer",
  "acquirer_signed_off",
  "acquirer_unreachable",
] as const;

/** The others pass as they are. */
const commandHeaders = z.looseObject({
  prefer: described(
    z.string(),
    "`respond-async` (RFC 7240): answer 202 with status INIT at once; the outcome comes as an IPN",
  ).optional(),
});

/** POST /v1/commands */
export function commandRoutes({ app, parts, callers }: PartnerRoutes): void {
  app.post(
    "/v1/commands",
    {
      // Problems of the shape are reported together with those of the partner's rules.
      attachValidation: true,
      ...operation(partner("commands", "async").runs, "runCommand", "Run a command", {
        description:
          "Answers 200 with the transaction once it is completed, a decline too. Answers 202 with status INIT " +
          "with `Prefer: respond-async`, or when the outcome is not known in time: it then comes as an IPN. The " +
          "same reqId and body again is the first result, without another IPN. A paused partner can still " +
          "command: a pause stops deliveries only.",
        headers: commandHeaders,
        body: commandSchema,
        response: {
          ...responses([200, transactionSchema, "Completed: see status and isoResponseCode"], ...commandErrors),
          ...answer(202, transactionSchema, "Accepted, the outcome is not known yet"),
        },
      }),
    },
    async (request, reply) => {
      const partner = callers.partner(request);
      if (request.validationError !== undefined) throw await everyBadField(request, partner, parts);
      const respondAsync = prefersAsync(request.headers["prefer"]);
      const { transaction, done } = await parts.ledger.run(partner, request.body, { respondAsync });
      return reply
        .code(done ? 200 : 202)
        .type("application/json")
        .send(JSON.stringify(transactionView(transaction, partner.settings)));
    },
  );
}

/** Every invalid field of a command: the shape's, and those of the partner's rules. */
export async function everyBadField(
  request: FastifyRequest,
  partner: Partner,
  parts: HttpDependencies,
): Promise<Error> {
  const shape = request.validationError;
  if (!(shape instanceof ServiceError)) return shape ?? new Error("a body was refused without a reason");
  const [first, ...others] = await everyProblemOfCommand(shape.fields, request.body, partner, parts);
  return first === undefined ? shape : badFields([first, ...others]);
}

const found = [200, transactionDetailSchema, "The transaction, its batch and its chain"] as const;

/** GET /v1/transactions/:id and GET /v1/transactions?reqId= */
export function transactionRoutes({ app, parts, callers }: PartnerRoutes): void {
  app.get(
    "/v1/transactions/:id",
    transactionOperation(partnerReads, "getTransaction", "Get a transaction by its id", {
      params: z.object({ id: described(z.string(), "The transaction's id") }),
      response: responses(found, "not_found"),
    }),
    async (request) => {
      const partner = callers.partner(request);
      const id = readId<"transaction">(request.params.id);
      const transaction = id && (await parts.ledger.find(partner.id, id));
      if (transaction === undefined) return noSuch("transaction");
      return transactionDetail(transaction, await parts.ledger.chain(transaction), partner.settings);
    },
  );
  app.get(
    "/v1/transactions",
    transactionOperation(partnerReads, "findTransaction", "Find a transaction by its reqId", {
      description: "What became of a command whose answer was lost.",
      querystring: z.strictObject({ reqId: described(z.string().max(36), "The reqId of its command, in any case") }),
      response: responses(found, "not_found"),
    }),
    async (request) => {
      const partner = callers.partner(request);
      const reqId = readId<"reqId">(request.query.reqId);
      const transaction = reqId && (await parts.ledger.findByReqId(partner.id, reqId));
      if (transaction === undefined) throw new ServiceError("not_found", "No command came under this reqId.");
      return transactionDetail(transaction, await parts.ledger.chain(transaction), partner.settings);
    },
  );
}

/** Of one that stands, an ERROR stays what its partner was told. */
function statusTold({ state, reversal, facts }: Transaction) {
  return reversal === "stands" && facts.fields["status"] === "ERROR" ? "ERROR" : state;
}

/** A transaction read later: the same, with its batch and its chain. */
function transactionDetail(transaction: Transaction, chain: readonly Transaction[], settings: PartnerSettings) {
  const { batch, facts, reversal } = transaction;
  return {
    ...transactionView(transaction, settings),
    batch: batch && { batchNo: facts.fields["batchNo"] ?? "", state: batch },
    reversal,
    chain: chain.map((link) => ({
      id: link.id,
      command: link.command,
      status: statusTold(link),
      isoResponseCode: link.facts.fields["isoResponseCode"] ?? "",
      amount: link.facts.fields["amount"] ?? "",
      createdAt: new Date(link.createdAtMs).toISOString(),
    })),
  };
}

/**
 * A transaction in the partner API: every field of its IPN's table except the signature, and fields that the IPN lacks.
 */
export function transactionView(transaction: Transaction, settings: PartnerSettings) {
  const { id, command, reqId, facts, notification, createdAtMs, callBackUrl, emv } = transaction;
  const ipn = viewOf(facts, settings, callBackUrl ?? registeredUrl(settings, command) ?? "");
  return {
    ...ipn,
    id,
    // As the caller wrote it; the ledger's own is in lower case.
    reqId: ipn.reqId === "" ? (reqId ?? "") : ipn.reqId,
    status: statusTold(transaction),
    command,
    createdAt: new Date(createdAtMs).toISOString(),
    notification: notification && { id: notification.id, state: notification.state },
    ...(emv !== undefined && { emv }),
  };
}

function viewOf(facts: Transaction["facts"], settings: PartnerSettings, callbackUrl: string) {
  if (facts.kind === "system") return renderSystem(facts, settings);
  const { ipn, kind } = renderIpn(facts, settings, { callbackUrl });
  if (kind === "card") return ipn;
  // The acquirer's answer to a Settlement: section 2.3 has a field for none of it.
  const { isoResponseCode = "", refId = "", settlementDate = "" } = facts.fields;
  return { ...ipn, isoResponseCode, refId, settlementDate };
}

/** A system command has no IPN and so no transaction_type; the other fields follow the card's table. */
function renderSystem(facts: SystemFacts, settings: PartnerSettings): UnsignedIpn<CardIpn> {
  const asCard: CardFacts = { kind: "card", command: "SALE", fields: facts.fields };
  return { ...renderIpn(asCard, settings, { callbackUrl: "" }).ipn, transaction_type: "" };
}
