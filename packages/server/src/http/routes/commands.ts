import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { badFields, ServiceError } from "../../errors.ts";
import { commandSchema } from "../../input/command-schema.ts";
import { described } from "../../input/descriptions.ts";
import { everyProblemOfCommand } from "../../input/every-problem.ts";
import type { Partner } from "../../partners/partner.ts";
import type { HttpDependencies, PartnerRoutes } from "../dependencies.ts";
import { prefersAsync } from "../prefers-async.ts";
import { answer, operations, responses } from "../schemas/problem.ts";
import { transactionSchema } from "../schemas/transaction.ts";
import { transactionView } from "../transaction-view.ts";

const operation = operations("Commands");

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
  "terminal_mid_mismatch",
  "terminal_not_registered",
  "terminal_taken",
  "too_many_terminals",
  "batch_currency",
  "owned_by_switch",
  "no_callback_url",
  "not_voidable",
  "not_completable",
  "not_reversible",
  "in_flight",
  "in_doubt",
  "not_successful",
  "already_voided",
  "already_completed",
  "already_reversed",
  "reversed_before_arrival",
  "batch_settled",
  "preauth_expired",
  "amount_above_authorised",
  "refunds_off",
  "not_refundable",
  "not_settled",
  "amount_above_refundable",
  "settlement_in_progress",
  "settlement_in_doubt",
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
      ...operation("runCommand", "Run a command", {
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

async function everyBadField(request: FastifyRequest, partner: Partner, parts: HttpDependencies): Promise<Error> {
  const shape = request.validationError;
  if (!(shape instanceof ServiceError)) return shape ?? new Error("a body was refused without a reason");
  const [first, ...others] = await everyProblemOfCommand(shape.fields, request.body, partner, parts);
  return first === undefined ? shape : badFields([first, ...others]);
}
