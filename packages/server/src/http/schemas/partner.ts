import { overlapHours as overlap } from "@paybell/contract";
import { z } from "zod";
import { bodyOf, component, componentOf, described } from "../../input/descriptions.ts";
import type { PartnerSetting, SettingTable } from "../../partners/setting.ts";
import { defaultSettings, partnerSettings } from "../../partners/settings.ts";
import { scopesSchema } from "./api-key.ts";
import { confirmedProposal } from "./proposal.ts";

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
export const partnerInputSchema = component(
  partnerInput,
  "PartnerRegistration",
  "What a partner agreed with the operator",
);
export const partnerPatchSchema = component(
  partnerInput.partial().extend({ proposal: confirmedProposal }),
  "PartnerPatch",
  "The settings to change",
);

export const partnerDefaultsSchema = componentOf(
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

const keyKind = z.enum(["apiKey", "encryptionKey", "signingKey", "webhookSecret"]);
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

const rotation = {
  key: keyKind,
  overlapHours: described(
    z.number().min(0).max(overlap.max).default(overlap.initial),
    "How long the old version stays valid",
  ),
};
export const ownRotateBody = bodyOf("OwnRotation", "Which of your keys to replace", rotation);
export const rotateBody = bodyOf("Rotation", "Which key to replace", { ...rotation, proposal: confirmedProposal });
export const rotatedSchema = componentOf("RotatedKey", "The new version", {
  id: z.uuid(),
  kind: keyKind,
  secret: described(z.string(), "Shown only once"),
  activeFrom: described(time, "From then on it encrypts or signs: install it before"),
  expiresOld: time,
});
