import { commands, type Field, type IpnKind, ipnFields, settlementListFields, statuses } from "@paybell/contract";
import { z } from "zod";
import { component, described } from "../../input/descriptions.ts";
import { notificationStates } from "../../notification-state.ts";

const beside = {
  command: z.enum(commands),
  createdAt: described(z.iso.datetime(), "When the command arrived"),
  notification: z.object({ id: z.uuid(), state: z.enum(notificationStates) }).nullable(),
  emv: described(z.string(), "What the issuer answered to the chip: in the answer to the command alone").optional(),
};

function viewSchema(kind: IpnKind) {
  const fields = ipnFields(kind).filter(({ name }) => name !== "signature");
  const properties = Object.fromEntries(fields.map((field) => [field.name, fieldOf(field)]));
  return z.object({
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
export const transactionDetailSchema = component(
  z.intersection(
    transactionSchema,
    z.object({
      batch: described(
        z.object({ batchNo: z.string(), state: z.enum(["open", "closing", "closed"]) }).nullable(),
        "The batch it belongs to, or settles; null for a PreAuth, a system command, and what a switch reported",
      ),
      reversal: described(z.enum(["pending", "done", "parked"]).nullable(), "The state of its own Reversal"),
      chain: described(z.array(link), "The first transaction and all that refer to it, in order"),
    }),
  ),
  "TransactionDetail",
  "A transaction with its batch, its Reversal and its chain",
);
