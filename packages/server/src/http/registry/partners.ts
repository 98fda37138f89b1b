import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { readId } from "../../ids.ts";
import { component, componentOf, described } from "../../input/descriptions.ts";
import type { PartnerSetting, SettingTable } from "../../partners/settings/setting.ts";
import {
  defaultSettings,
  loweredSettings,
  type PartnerInput,
  partnerSettings,
} from "../../partners/settings/settings.ts";
import type { OperatorCallers } from "../callers/operator-callers.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { bodyCheckedElsewhere, exported, operations, type PartnerRoutes, responses } from "../operation.ts";
import { confirmedProposal, pageQuery, partnerParams, requirePartner, requirePartnerId } from "../parameters.ts";
import { admin, operator, partner, viewer } from "../policy.ts";
import { keyKind, scopesSchema } from "./keys.ts";
import { requireMayLower } from "./second-admin.ts";

const operation = operations("Partners");
const ownOperation = operations("Self");

/** As in the API's documentation. Each setting of a group may be missing. */
function schemaOf({ schema, meaning }: PartnerSetting<unknown>): z.ZodType {
  const documented = schema instanceof z.ZodType ? schema : z.strictObject(shapeOf(schema)).partial();
  return meaning === undefined ? documented : described(documented, meaning);
}

function shapeOf(table: SettingTable): Record<string, z.ZodType> {
  return Object.fromEntries(Object.entries(table).map(([name, setting]) => [name, schemaOf(setting)]));
}

const settings = shapeOf(partnerSettings);
const withDefaults = Object.keys(defaultSettings).map((name) => [name, settings[name]?.optional()]);
const partnerInput = z.strictObject({ ...settings, ...Object.fromEntries(withDefaults) });

/** For the documentation: the registry checks the values, so that every invalid setting is named at once. */
const partnerInputSchema = component(partnerInput, "PartnerRegistration", "What a partner agreed with the operator");
export const partnerPatchSchema = component(
  partnerInput.partial().extend({ proposal: confirmedProposal }),
  "PartnerPatch",
  "The settings to change",
);

const partnerDefaultsSchema = componentOf(
  "PartnerDefaults",
  "The settings of a new partner, where its registration does not name them",
  Object.fromEntries(Object.keys(defaultSettings).map((name) => [name, settings[name] as z.ZodType])),
);

export const newPartnerSchema = componentOf("NewPartner", "A new partner's id and keys. The keys are shown only once", {
  id: z.uuid(),
  apiKey: described(z.string(), "pb_ and base64url"),
  encryptionKey: described(z.string(), "base64 of 32 bytes"),
  signingKey: described(z.string(), "base64 of 32 bytes"),
  webhookSecret: described(z.string(), "whsec_ and base64 of 32 bytes"),
});

const time = z.iso.datetime();

const keyVersion = componentOf("KeyVersion", "A version of a key; never the key itself", {
  id: z.uuid(),
  kind: z.enum([...keyKind.options, "callbackKey"]),
  activeFrom: time,
  expiresAt: time.nullable(),
  seals: described(z.int(), "Of an encryption key: how often it encrypted, at most").optional(),
  name: described(z.string(), "Of an API key beside the first one: what it is for").optional(),
  scopes: scopesSchema.optional(),
  lastUsedAt: described(time.nullable(), "Of an API key, to the minute; null: never").optional(),
  createdAt: time,
});

const record = {
  id: z.uuid(),
  state: described(z.enum(["active", "paused", "disabled"]), "paused: commands go on, deliveries wait"),
  settings: z.object(settings),
  keys: z.array(keyVersion),
  createdAt: time,
  updatedAt: time,
};

export const partnerSchema = componentOf("Partner", "A partner as registered", record);
export const partnerPageSchema = z.object({ items: z.array(partnerSchema), next: z.string().nullable() });
export const selfSchema = componentOf("Self", "The calling partner, as registered", {
  ...record,
  egressAddresses: described(z.array(z.string()), "Where callbacks come from: for your allowlist"),
  proofPublicKey: described(
    z.string(),
    "Proofs of delivery are checked with it: Ed25519, SubjectPublicKeyInfo in base64",
  ),
});

const settingErrors = [
  "invalid_callback_url",
  "insecure_callback_url",
  "address_not_whitelisted",
  "invalid_signing",
  "card_number_in_clear",
] as const;
const partnerFound = [200, partnerSchema, "The partner"] as const;

const removedSchema = componentOf("RemovedPartner", "A partner that was deleted after its archive was written", {
  id: z.uuid(),
  records: described(z.int(), "Rows that were deleted, the partner's own included"),
});

/** Partners: their registration, settings and states, and what is stored of those that have left. */
export function operatorPartnerRoutes(
  app: HttpApp,
  { registry, proposals, archive }: HttpDependencies,
  callers: Pick<OperatorCallers, "actor">,
): void {
  app.post(
    "/operator/v1/partners",
    {
      validatorCompiler: bodyCheckedElsewhere,
      ...operation(admin.changes("input"), "registerPartner", "Register a partner", {
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
    operation(viewer.reads, "listPartners", "List the partners, in the order of registration", {
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
    operation(viewer.reads, "getPartnerDefaults", "See the settings that a new partner gets", {
      response: responses([200, partnerDefaultsSchema, "The defaults of this service"]),
    }),
    async () => registry.defaults,
  );
  app.get(
    "/operator/v1/partners/:id",
    operation(viewer.reads, "getPartner", "Get a partner", {
      params: partnerParams,
      response: responses(partnerFound, "not_found"),
    }),
    async (request) => await requirePartner(registry, request.params.id),
  );
  app.patch(
    "/operator/v1/partners/:id",
    {
      validatorCompiler: bodyCheckedElsewhere,
      ...operation(
        { ...operator.changes("partner"), takesTwo: "changePartner" },
        "changePartner",
        "Change a partner's settings",
        {
          description:
            "What is left out stays. A changed setting also applies to notifications that wait. Lower protection " +
            "requires the role admin, and a second admin where two are needed: aes-256-cbc, fewer signed fields, " +
            "another callbackCa or pin or none, and further callingAddresses.",
          params: partnerParams,
          body: partnerPatchSchema,
          response: responses(partnerFound, ...settingErrors, "not_found", "second_admin_required"),
        },
      ),
    },
    async (request) => {
      const { proposal: _, ...patch } = request.body as Partial<PartnerInput> & { readonly proposal?: string };
      const rule = await proposals.rule();
      return await registry.change(requirePartnerId(request.params.id), patch, (standing, next) =>
        requireMayLower(request, callers.actor(request), loweredSettings(standing, next), rule),
      );
    },
  );
  for (const [action, state, summary, description] of states) {
    app.post(
      `/operator/v1/partners/:id/${action}`,
      operation(operator.changes("partner"), `${action}Partner`, summary, {
        description,
        params: partnerParams,
        response: responses(partnerFound, "not_found"),
      }),
      async (request) => await registry.setState(requirePartnerId(request.params.id), state),
    );
  }
  app.get(
    "/operator/v1/partners/:id/archive",
    operation(admin.looks("partner"), "exportPartner", "Export all that is stored of a partner that has left", {
      description:
        "One JSON object a line, `{table, row}`. Keys and cards are left out. The partner must be disabled, with " +
        "nothing pending, no command in flight and no open batch.",
      params: partnerParams,
      response: responses([200, z.string(), "The partner", "application/jsonl"], "not_found", "partner_in_use"),
    }),
    async (request, reply) => {
      const pages = await archive.export(requirePartnerId(request.params.id));
      return reply.type("application/jsonl").send(exported(text(pages)));
    },
  );
  app.delete(
    "/operator/v1/partners/:id",
    operation(admin.acts("partner"), "removePartner", "Delete a partner whose archive was written", {
      description: "Nothing of it is left but the audit. A deletion that was interrupted is repeated.",
      params: partnerParams,
      querystring: z.strictObject({
        records: described(z.coerce.number().int().min(1), "The lines of its archive: another number is refused"),
      }),
      response: responses([200, removedSchema, "It is deleted"], "not_found", "partner_in_use"),
    }),
    async ({ params: { id }, query: { records } }) => {
      const partnerId = requirePartnerId(id);
      await archive.remove(partnerId, records);
      return { id: partnerId, records };
    },
  );
}

const states = [
  ["pause", "paused", "Pause deliveries to a partner", "The partner can still run commands; its notifications wait."],
  ["resume", "active", "Resume deliveries to a partner", "Also ends a disable."],
  ["disable", "disabled", "Disable a partner", "Its API key is refused with 403, and nothing is delivered to it."],
] as const;

/** GET /v1/self */
export function selfRoutes({ app, parts, callers }: PartnerRoutes): void {
  app.get(
    "/v1/self",
    ownOperation(
      partner(null, "requests").reads,
      "getSelf",
      "Get your settings, key versions and our egress addresses",
      {
        response: responses([200, selfSchema, "The calling partner"]),
      },
    ),
    async (request) => {
      const record = await parts.registry.find(callers.partner(request).id);
      if (record === undefined) throw new ServiceError("not_found");
      return { ...record, egressAddresses: parts.config.egressAddresses, proofPublicKey: parts.proofPublicKey };
    },
  );
}

async function* text(pages: AsyncIterable<readonly string[]>): AsyncGenerator<string> {
  for await (const lines of pages) yield lines.map((line) => `${line}\n`).join("");
}
