import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import type { OperatorCallers } from "../operator-callers.ts";
import {
  clearingException,
  clearingExceptionPage,
  clearingFile,
  clearingFilePage,
  clearingParams,
  exceptionsQuery,
  filesQuery,
  receivedFile,
  receiveQuery,
} from "../schemas/clearing.ts";
import { reasonBody } from "../schemas/money.ts";
import { operations, responses } from "../schemas/problem.ts";

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
      request.body = request.query;
    });
    scope.post(
      "/operator/v1/clearing-files",
      operation("receiveClearingFile", "Hand over a clearing file", {
        description:
          "The file is the body, as the acquirer's profile describes it in `clearing`. It is read at once, without " +
          "card numbers, and matched afterwards. One that cannot be read changes nothing: the problem names line " +
          "and column. The same file again has the same id, and changes nothing.",
        querystring: receiveQuery,
        response: responses([202, receivedFile, "It was read"], "clearing_unreadable"),
      }),
      async (request, reply) => {
        const { acquirer, name = "" } = request.query as { acquirer: string; name?: string };
        return reply.code(202).send({ id: await clearing.receive(stored(acquirer), name, request.raw) });
      },
    );
    done();
  });
  app.get(
    "/operator/v1/clearing-files",
    operation("listClearingFiles", "List clearing files", {
      querystring: filesQuery,
      response: responses([200, clearingFilePage, "A page"]),
    }),
    async ({ query: { acquirer, ...query } }) => await clearing.files({ ...query, acquirer: filtered(acquirer) }),
  );
  app.get(
    "/operator/v1/clearing-files/:id",
    operation("inspectClearingFile", "See how a clearing file compares with the ledger", {
      params: clearingParams,
      response: responses([200, clearingFile, "So far"], "not_found"),
    }),
    async (request) => await clearing.file(request.params.id),
  );
  app.get(
    "/operator/v1/clearing-exceptions",
    operation("searchClearingExceptions", "Search what differs between clearing files and the ledger", {
      querystring: exceptionsQuery,
      response: responses([200, clearingExceptionPage, "A page"]),
    }),
    async ({ query: { acquirer, ...query } }) => await clearing.exceptions({ ...query, acquirer: filtered(acquirer) }),
  );
  app.get(
    "/operator/v1/clearing-exceptions/:id",
    operation("inspectClearingException", "See one exception", {
      description: "The role `operator` sees the proof of delivery of a chargeback's transaction.",
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
    operation("resolveClearingException", "Mark an exception as worked off", {
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

/** The acquirer of the settings has no name where acquirers are stored. */
function stored(acquirer: string): string {
  return acquirer === "default" ? "" : acquirer;
}

function filtered(acquirer: string | undefined): string | undefined {
  return acquirer === undefined ? undefined : stored(acquirer);
}
