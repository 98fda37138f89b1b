import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { readId } from "../../ids.ts";
import { described } from "../../input/descriptions.ts";
import type { PartnerRoutes } from "../dependencies.ts";
import { operations, responses } from "../schemas/problem.ts";
import { transactionDetailSchema } from "../schemas/transaction.ts";
import { transactionDetail } from "../transaction-view.ts";

const operation = operations("Transactions");

const found = [200, transactionDetailSchema, "The transaction, its batch and its chain"] as const;

/** GET /v1/transactions/:id and GET /v1/transactions?reqId= */
export function transactionRoutes({ app, parts, callers }: PartnerRoutes): void {
  app.get(
    "/v1/transactions/:id",
    operation("getTransaction", "Get a transaction by its id", {
      params: z.object({ id: described(z.string(), "The transaction's id") }),
      response: responses(found, "not_found"),
    }),
    async (request) => {
      const partner = callers.partner(request);
      const id = readId<"transaction">(request.params.id);
      const transaction = id && (await parts.ledger.find(partner.id, id));
      if (transaction === undefined) throw new ServiceError("not_found", "There is no such transaction.");
      return transactionDetail(transaction, await parts.ledger.chain(transaction), partner.settings);
    },
  );
  app.get(
    "/v1/transactions",
    operation("findTransaction", "Find a transaction by its reqId", {
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
