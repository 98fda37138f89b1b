import { z } from "zod";
import { bodyOf, component, componentOf, described } from "../../input/descriptions.ts";
import type { TerminalInput } from "../../partners/terminal.ts";
import { terminalLengthsMax } from "../../partners/terminal.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { bodyCheckedElsewhere, operations, responses } from "../operation.ts";
import { pageQuery, partnerParams, requirePartnerId } from "../parameters.ts";
import { operator, viewer } from "../policy.ts";

const operation = operations("Partners");

const terminalText = (name: keyof typeof terminalLengthsMax) => z.string().max(terminalLengthsMax[name]);

const terminalBody = bodyOf(
  "TerminalRegistration",
  "A terminal's merchant and device; what is left out becomes empty",
  {
    mid: terminalText("mid"),
    merchantId: terminalText("merchantId").optional(),
    merchantName: terminalText("merchantName").optional(),
    merchantAddress: terminalText("merchantAddress").optional(),
    deviceId: terminalText("deviceId").optional(),
    appName: terminalText("appName").optional(),
    acquirer: described(
      terminalText("acquirer"),
      "The name of the acquirer that its commands go to; empty: the one of the settings",
    ).optional(),
  },
);
export const terminalSchema = componentOf("Terminal", "A terminal as registered", {
  tid: z.string(),
  ...terminalBody.required().shape,
});
const terminalPageSchema = z.object({ items: z.array(terminalSchema), next: z.string().nullable() });

const terminalQuery = z.strictObject({
  q: described(z.string().min(1).max(128), "A tid, a mid, or the beginning of a merchant's name"),
});
const foundTerminalsSchema = z.object({
  items: z.array(component(terminalSchema.extend({ partnerId: z.uuid() }), "FoundTerminal", "A terminal of a partner")),
});

const terminalParams = z.object({ ...partnerParams.shape, tid: described(z.string(), "Terminal ID") });

export function terminalRoutes(app: HttpApp, { registry }: HttpDependencies): void {
  app.put(
    "/operator/v1/partners/:id/terminals/:tid",
    {
      validatorCompiler: bodyCheckedElsewhere,
      ...operation(operator.changes("terminal"), "putTerminal", "Register or change a terminal", {
        params: terminalParams,
        body: terminalBody,
        response: responses(
          [200, terminalSchema, "The terminal"],
          "delimiter_in_signed_field",
          "invalid_text",
          "card_number_in_clear",
          "not_found",
          "terminal_taken",
          "terminal_busy",
        ),
      }),
    },
    async (request) => {
      const { id, tid } = request.params;
      // The registry judges every field, and names all that are wrong at once.
      return await registry.putTerminal(requirePartnerId(id), tid, request.body as TerminalInput);
    },
  );
  app.delete(
    "/operator/v1/partners/:id/terminals/:tid",
    operation(operator.changes("terminal"), "removeTerminal", "Release a terminal, so that it belongs to no partner", {
      description:
        "Also one that was never registered, and belongs to the partner by its first command. Refused while money " +
        "is open on it: its batch is not empty, or was settled late and no Settlement has reported it yet, a PreAuth is " +
        "open, or a command is in flight.",
      params: terminalParams,
      response: responses([200, terminalSchema, "The terminal as it was"], "not_found", "terminal_busy"),
    }),
    async (request) => await registry.removeTerminal(requirePartnerId(request.params.id), request.params.tid),
  );
  app.get(
    "/operator/v1/terminals",
    operation(viewer.reads, "findTerminals", "Find terminals of all partners", {
      querystring: terminalQuery,
      response: responses([200, foundTerminalsSchema, "The first 50"]),
    }),
    async (request) => ({ items: await registry.findTerminals(request.query.q) }),
  );
  app.get(
    "/operator/v1/partners/:id/terminals",
    operation(viewer.reads, "listTerminals", "List a partner's terminals", {
      params: partnerParams,
      querystring: pageQuery,
      response: responses([200, terminalPageSchema, "A page"], "not_found"),
    }),
    async (request) => {
      const { after, limit } = request.query;
      return await registry.terminals(requirePartnerId(request.params.id), {
        limit,
        ...(after !== undefined && { after }),
      });
    },
  );
}
