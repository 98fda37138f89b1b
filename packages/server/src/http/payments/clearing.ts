import { z } from "zod";
import { exceptionKinds, exceptionStates } from "../../clearing/store.ts";
import { safeFieldName } from "../../guards/safe-text.ts";
import { componentOf, described } from "../../input/descriptions.ts";
import type { OperatorCallers } from "../callers/operator-callers.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, responses } from "../operation.ts";
import { limit } from "../parameters.ts";
import { operator, viewer } from "../policy.ts";
import { reasonBody } from "./money.ts";

const time = z.iso.datetime();
const guid = z.guid();
const lineKinds = ["sale", "refund", "void", "fee", "chargeback"] as const;

const acquirerQuery = described(z.string().max(32), "Its name; `default`: that of the settings");
const paged = {
  after: described(guid.optional(), "`next` of the previous page"),
  limit,
};

const receiveQuery = z.strictObject({
  acquirer: acquirerQuery,
  name: described(z.string().max(200), "The file's name, as it is shown").optional(),
});
const filesQuery = z.strictObject({ acquirer: acquirerQuery.optional(), ...paged });
const exceptionsQuery = z.strictObject({
  state: described(z.enum(exceptionStates), "Only those in this state").optional(),
  acquirer: acquirerQuery.optional(),
  transaction: described(guid.optional(), "Only those about this transaction"),
  file: described(guid.optional(), "Only those of this file"),
  ...paged,
});
const clearingParams = z.object({ id: guid });

const acquirer = described(z.string(), "The acquirer; empty: that of the settings");
const kindTotal = z.object({
  kind: z.enum(lineKinds),
  currency: z.string(),
  lines: z.int(),
  totalMinor: described(z.string(), "Their sum, in the currency's smallest unit"),
});

const clearingFile = componentOf("ClearingFile", "A clearing file, and how it compares with the ledger", {
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
const clearingFilePage = componentOf("ClearingFilePage", "Newest first", {
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

const inLedger = z.object({
  refId: z.string(),
  traceNo: z.string(),
  tid: z.string(),
  amount: z.string(),
  currency: z.string(),
});

const clearingException = componentOf(
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
    here: described(inLedger.nullable(), "Of the transaction, as its IPN has them; empty if it failed"),
    fileId: guid,
    line: clearingLine.nullable(),
    differences: z.array(z.object({ field: z.string(), here: z.string(), there: z.string() })),
    proof: described(z.unknown(), "Of a chargeback: the signed proof of delivery of its IPN. Null in lists"),
    reason: described(z.string().nullable(), "Why it was resolved"),
    createdAt: time,
    resolvedAt: time.nullable(),
  },
);
const clearingExceptionPage = componentOf("ClearingExceptionPage", "Newest first", {
  items: z.array(clearingException),
  next: guid.nullable(),
});

const receivedFile = componentOf("ReceivedClearingFile", "The file's id", { id: guid });

const operation = operations("Clearing");

/** Clearing files of acquirers, and what in them differs from the ledger. */
export function operatorClearingRoutes(
  app: HttpApp,
  { clearing }: HttpDependencies,
  callers: Pick<OperatorCallers, "mayReadContent">,
): void {
  app.register((scope, _, done) => {
    // The handler reads the file as a stream.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (__, ___, parsed) => parsed(null));
    // The audit records an action's body: here, whose file it was.
    scope.addHook("preValidation", async (request) => {
      const query = request.query as Readonly<Record<string, unknown>>;
      const { name } = query;
      request.body = request.query = { ...query, ...(typeof name === "string" && { name: safeFieldName(name) }) };
    });
    scope.post(
      "/operator/v1/clearing-files",
      operation(operator.acts("input"), "receiveClearingFile", "Hand over a clearing file", {
        description:
          "The file is the body, as the acquirer's profile describes it in `clearing`. It is read at once, without " +
          "card numbers, and matched afterwards. One that cannot be read changes nothing: the problem names line " +
          "and column. The same file again has the same id, and changes nothing.",
        querystring: receiveQuery,
        response: responses([202, receivedFile, "It was read"], "clearing_unreadable"),
      }),
      async (request, reply) => {
        const { acquirer, name = "" } = request.query as { acquirer: string; name?: string };
        // A request that is destroyed could not be answered, and one that is not read to its end blocks its connection.
        const bytes = request.raw.iterator({ destroyOnReturn: false });
        const received = clearing.receive(acquirer, name, bytes).finally(() => request.raw.resume());
        return reply.code(202).send({ id: await received });
      },
    );
    done();
  });
  app.get(
    "/operator/v1/clearing-files",
    operation(viewer.reads, "listClearingFiles", "List clearing files", {
      querystring: filesQuery,
      response: responses([200, clearingFilePage, "A page"]),
    }),
    async ({ query }) => await clearing.files(query),
  );
  app.get(
    "/operator/v1/clearing-files/:id",
    operation(viewer.reads, "inspectClearingFile", "See how a clearing file compares with the ledger", {
      params: clearingParams,
      response: responses([200, clearingFile, "So far"], "not_found"),
    }),
    async (request) => await clearing.file(request.params.id),
  );
  app.get(
    "/operator/v1/clearing-exceptions",
    operation(viewer.reads, "searchClearingExceptions", "Search what differs between clearing files and the ledger", {
      querystring: exceptionsQuery,
      response: responses([200, clearingExceptionPage, "A page"]),
    }),
    async ({ query }) => await clearing.exceptions(query),
  );
  app.get(
    "/operator/v1/clearing-exceptions/:id",
    operation(viewer.looks("input"), "inspectClearingException", "See one exception", {
      description:
        "The role `operator` sees the proof of delivery of a chargeback's transaction. The audit records each look.",
      params: clearingParams,
      response: responses([200, clearingException, "As it is now"], "not_found"),
    }),
    async (request) => {
      const found = await clearing.exception(request.params.id);
      return callers.mayReadContent(request) ? found : { ...found, proof: null };
    },
  );
  app.post(
    "/operator/v1/clearing-exceptions/:id/resolve",
    operation(operator.acts("input"), "resolveClearingException", "Mark an exception as worked off", {
      params: clearingParams,
      body: reasonBody,
      response: responses(
        [200, clearingException, "It is resolved"],
        "not_found",
        "exception_resolved",
        "card_number_in_clear",
      ),
    }),
    async (request) => ({ ...(await clearing.resolve(request.params.id, request.body.reason)), proof: null }),
  );
}
