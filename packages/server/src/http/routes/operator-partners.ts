import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { readId } from "../../ids.ts";
import { described } from "../../input/descriptions.ts";
import { loweredSettings } from "../../partners/protection.ts";
import type { PartnerInput } from "../../partners/settings.ts";
import type { TerminalInput } from "../../partners/terminal.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import type { OperatorCallers } from "../operator-callers.ts";
import { pageQuery } from "../schemas/notification.ts";
import {
  newPartnerSchema,
  partnerDefaultsSchema,
  partnerInputSchema,
  partnerPageSchema,
  partnerPatchSchema,
  partnerSchema,
  rotateBody,
  rotatedSchema,
} from "../schemas/partner.ts";
import { noSuchPartner, operations, partnerParams, requirePartnerId, responses } from "../schemas/problem.ts";
import {
  foundTerminalsSchema,
  terminalBody,
  terminalPageSchema,
  terminalQuery,
  terminalSchema,
} from "../schemas/terminal.ts";
import { requireMayLower } from "../second-admin.ts";
import { bodyCheckedElsewhere } from "../validation.ts";

const operation = operations("Partners");

const terminalParams = z.object({ ...partnerParams.shape, tid: described(z.string(), "Terminal ID") });
const settingErrors = [
  "invalid_callback_url",
  "insecure_callback_url",
  "address_not_whitelisted",
  "invalid_signing",
  "card_number_in_clear",
] as const;
const partnerFound = [200, partnerSchema, "The partner"] as const;

/** Registration of partners, their keys and terminals. */
export function operatorPartnerRoutes(
  app: HttpApp,
  { registry, proposals }: HttpDependencies,
  callers: Pick<OperatorCallers, "actor">,
): void {
  app.post(
    "/operator/v1/partners",
    {
      validatorCompiler: bodyCheckedElsewhere,
      ...operation("registerPartner", "Register a partner", {
        description: "The keys are in this answer only: nothing shows them again.",
        body: partnerInputSchema,
        response: responses([201, newPartnerSchema, "Registered"], ...settingErrors),
      }),
    },
    async (request, reply) => {
      // The registry judges every setting, and names all that are wrong at once.
      const { partner, secrets } = await registry.register(request.body as PartnerInput);
      return reply
        .code(201)
        .header("location", `/operator/v1/partners/${partner.id}`)
        .send({ id: partner.id, ...secrets });
    },
  );
  app.get(
    "/operator/v1/partners",
    operation("listPartners", "List the partners, in the order of registration", {
      querystring: pageQuery,
      response: responses([200, partnerPageSchema, "A page"], "invalid_cursor"),
    }),
    async (request) => {
      const { after, limit } = request.query;
      if (after === undefined) return await registry.list({ limit });
      const id = readId<"partner">(after);
      if (id === undefined) throw new ServiceError("invalid_cursor");
      return await registry.list({ after: id, limit });
    },
  );
  app.get(
    "/operator/v1/partner-defaults",
    operation("getPartnerDefaults", "See the settings that a new partner gets", {
      response: responses([200, partnerDefaultsSchema, "The defaults of this service"]),
    }),
    async () => registry.defaults,
  );
  app.get(
    "/operator/v1/partners/:id",
    operation("getPartner", "Get a partner", { params: partnerParams, response: responses(partnerFound, "not_found") }),
    async (request) => {
      const partner = await registry.find(requirePartnerId(request.params.id));
      if (partner === undefined) noSuchPartner();
      return partner;
    },
  );
  app.patch(
    "/operator/v1/partners/:id",
    {
      validatorCompiler: bodyCheckedElsewhere,
      ...operation("changePartner", "Change a partner's settings", {
        description:
          "What is left out stays. A changed setting also applies to notifications that wait. Lower protection " +
          "requires the role admin, and a second admin where two are needed: aes-256-cbc, fewer signed fields, " +
          "another callbackCa or pin or none, and further callingAddresses.",
        params: partnerParams,
        body: partnerPatchSchema,
        response: responses(partnerFound, ...settingErrors, "not_found", "second_admin_required"),
      }),
    },
    async (request) => {
      const { proposal: _, ...patch } = request.body as Partial<PartnerInput> & { readonly proposal?: string };
      const rule = await proposals.rule();
      return await registry.change(requirePartnerId(request.params.id), patch, (standing, next) =>
        requireMayLower(request, callers.actor(request), loweredSettings(standing, next), rule),
      );
    },
  );
  app.post(
    "/operator/v1/partners/:id/keys/rotate",
    operation("rotateKey", "Replace a key", {
      description:
        "Encryption and signing: the old version is used until the overlap ends, because the partner has to " +
        "install the new one first; with an overlap of 0 the new one is used at once. Webhook secret and API " +
        "key: both are valid during the overlap.",
      params: partnerParams,
      body: rotateBody,
      response: responses(
        [200, rotatedSchema, "The new version; its secret is in this answer only"],
        "not_found",
        "second_admin_required",
      ),
    }),
    async (request) =>
      await registry.rotate(requirePartnerId(request.params.id), request.body.key, request.body.overlapHours),
  );
  for (const [action, state, summary, description] of states) {
    app.post(
      `/operator/v1/partners/:id/${action}`,
      operation(`${action}Partner`, summary, {
        description,
        params: partnerParams,
        response: responses(partnerFound, "not_found"),
      }),
      async (request) => await registry.setState(requirePartnerId(request.params.id), state),
    );
  }
  terminalRoutes(app, registry);
}

const states = [
  ["pause", "paused", "Pause deliveries to a partner", "The partner can still run commands; its notifications wait."],
  ["resume", "active", "Resume deliveries to a partner", "Also ends a disable."],
  ["disable", "disabled", "Disable a partner", "Its API key is refused with 403, and nothing is delivered to it."],
] as const;

function terminalRoutes(app: HttpApp, registry: HttpDependencies["registry"]): void {
  app.put(
    "/operator/v1/partners/:id/terminals/:tid",
    {
      validatorCompiler: bodyCheckedElsewhere,
      ...operation("putTerminal", "Register or change a terminal", {
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
    operation("removeTerminal", "Release a terminal, so that it belongs to no partner", {
      description:
        "Also one that was never registered, and belongs to the partner by its first command. Refused while money " +
        "is open on it: its batch is not empty, a PreAuth is open, or a command is in flight.",
      params: terminalParams,
      response: responses([200, terminalSchema, "The terminal as it was"], "not_found", "terminal_busy"),
    }),
    async (request) => await registry.removeTerminal(requirePartnerId(request.params.id), request.params.tid),
  );
  app.get(
    "/operator/v1/terminals",
    operation("findTerminals", "Find terminals of all partners", {
      querystring: terminalQuery,
      response: responses([200, foundTerminalsSchema, "The first 50"]),
    }),
    async (request) => ({ items: await registry.findTerminals(request.query.q) }),
  );
  app.get(
    "/operator/v1/partners/:id/terminals",
    operation("listTerminals", "List a partner's terminals", {
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
