import { z } from "zod";
import { exceptionKinds, exceptionStates } from "../../clearing/store.ts";
import { componentOf, described } from "../../input/descriptions.ts";
import { limit } from "./problem.ts";

const time = z.iso.datetime();
const guid = z.guid();
const lineKinds = ["sale", "refund", "void", "fee", "chargeback"] as const;

const acquirerQuery = described(z.string().max(32), "Its name; `default`: that of the settings");
const paged = {
  after: described(guid.optional(), "`next` of the previous page"),
  limit,
};

export const receiveQuery = z.strictObject({
  acquirer: acquirerQuery.clone(),
  name: described(z.string().max(200), "The file's name, as it is shown").optional(),
});
export const filesQuery = z.strictObject({ acquirer: acquirerQuery.clone().optional(), ...paged });
export const exceptionsQuery = z.strictObject({
  state: described(z.enum(exceptionStates), "Only those in this state").optional(),
  acquirer: acquirerQuery.clone().optional(),
  transaction: described(guid.optional(), "Only those about this transaction"),
  file: described(guid.optional(), "Only those of this file"),
  ...paged,
});
export const clearingParams = z.object({ id: guid });

const acquirer = described(z.string(), "The acquirer; empty: that of the settings");
const kindTotal = z.object({
  kind: z.enum(lineKinds),
  currency: z.string(),
  lines: z.int(),
  totalMinor: described(z.string(), "Their sum, in the currency's smallest unit"),
});

export const clearingFile = componentOf("ClearingFile", "A clearing file, and how it compares with the ledger", {
  id: guid,
  acquirer,
  name: z.string(),
  state: described(z.enum(["matching", "done"]), "The counts are final once it is done"),
  receivedAt: time,
  doneAt: time.nullable(),
  lines: z.int(),
  totals: described(z.array(kindTotal), "By kind and currency"),
  matched: described(z.int(), "Lines that agree with a transaction"),
  waiting: described(z.int(), "Lines whose transaction may still come, until the profile's daysMax"),
  missingHere: described(z.int(), "Lines without a transaction"),
  missingThere: described(z.int(), "Transactions found missing when this file was the last"),
  different: described(z.int(), "Lines that differ from their transaction"),
  fees: z.int(),
  chargebacks: z.int(),
});
export const clearingFilePage = componentOf("ClearingFilePage", "Newest first", {
  items: z.array(clearingFile),
  next: guid.nullable(),
});

const clearingLine = componentOf("ClearingLine", "A line of a clearing file, without card numbers", {
  line: described(z.int(), "Its number in the file, from 1"),
  kind: z.enum(lineKinds),
  refId: z.string(),
  trace: z.string(),
  tid: z.string(),
  mid: z.string(),
  minor: described(z.string(), "The amount, in the currency's smallest unit"),
  currency: z.string(),
  day: z.iso.date(),
  reason: described(z.string(), "Of a chargeback or a fee, as the file has it"),
});

export const clearingException = componentOf(
  "ClearingException",
  "A difference between a clearing file and the ledger, to be worked off",
  {
    id: guid,
    kind: described(
      z.enum(exceptionKinds),
      "missing_here: a line without a transaction; missing_there: a transaction that no file has; different: both, " +
        "and they differ; chargeback: the acquirer takes the money back",
    ),
    state: z.enum(exceptionStates),
    acquirer,
    partnerId: guid.nullable(),
    transactionId: guid.nullable(),
    notificationId: described(guid.nullable(), "Of the transaction's IPN"),
    fileId: guid,
    line: clearingLine.nullable(),
    differences: z.array(z.object({ field: z.string(), here: z.string(), there: z.string() })),
    proof: described(z.unknown(), "Of a chargeback: the signed proof of delivery of its IPN. Null in lists"),
    reason: described(z.string().nullable(), "Why it was resolved"),
    createdAt: time,
    resolvedAt: time.nullable(),
  },
);
export const clearingExceptionPage = componentOf("ClearingExceptionPage", "Newest first", {
  items: z.array(clearingException),
  next: guid.nullable(),
});

export const receivedFile = componentOf("ReceivedClearingFile", "The file's id", { id: guid });
