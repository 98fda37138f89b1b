import { ciphers, encodings, notifiedCommands, transactionTypes, wireNames } from "@paybell/contract";
import { z } from "zod";
import { callbackTlsBounds } from "../../partners/callback-tls.ts";
import { settingsBounds } from "../../partners/settings.ts";
import { scopesSchema } from "./api-key.ts";
import { component, described } from "./registry.ts";

const cidrs = z.array(z.string()).max(settingsBounds.addressesMax);
const mode = { fields: z.literal("fields"), whole: z.literal("whole") };

const required = {
  name: z.string().max(settingsBounds.nameCharactersMax),
  callbackAddresses: described(cidrs.min(1), "CIDRs that a callback's address must be in"),
  callingAddresses: described(
    z.array(z.string()).max(settingsBounds.addressesMax),
    "CIDRs that the partner calls from",
  ),
};

const optional = {
  callBackUrl: described(z.string().nullable(), "Used where a command brings none of its own (section 4.1)"),
  callbackCa: described(z.string().nullable(), "PEM: the authorities that alone may vouch for a callback's server"),
  callbackPins: described(
    z.array(z.string()).max(callbackTlsBounds.pinsMax),
    "sha256/ and base64 of the SPKI's SHA-256: the server's public key must be one of these",
  ),
  callbackPorts: described(
    z.array(z.int().min(1).max(65_535)).min(1).max(callbackTlsBounds.portsMax).nullable(),
    "Ports that a callback may have; null: any",
  ),
  cipher: z.enum(ciphers),
  encoding: z.enum(encodings),
  signing: described(
    z.union([
      z.strictObject({
        mode: mode.fields,
        card: z.array(z.string()).optional(),
        settlement: z.array(z.string()).optional(),
      }),
      z.strictObject({ mode: mode.whole }),
    ]),
    "fields: the specification's order, or the agreed lists; whole: RFC 8785 of the whole IPN",
  ),
  wireNames: z.enum(wireNames),
  transactionTypes: described(
    z.partialRecord(z.enum([...notifiedCommands, "VOID_PREAUTH"]), z.enum(transactionTypes)),
    "The transaction_type of each command's IPN",
  ),
  swipeTypes: described(z.enum(["code", "contact"]), "contact: sends C as CL and CTL as CLS"),
  settlementTotal: described(z.enum(["sum", "net"]), "totalAmount: Sales plus Voids, or Sales less Voids"),
  transactionTime: z.enum(["table", "iso8601"]),
  timeZone: described(z.string(), "IANA name, such as Asia/Ho_Chi_Minh"),
  ordering: z.enum(["chain", "none"]),
  retry: described(
    z.array(z.int().min(1).max(settingsBounds.retryStepSMax)).min(1).max(settingsBounds.retryStepsMax),
    "Seconds to wait after each failed attempt",
  ),
  maxInFlight: z.int().min(1).max(settingsBounds.maxInFlight),
  maxPerSecond: z.int().min(1).max(settingsBounds.maxPerSecond).nullable(),
  terminals: described(z.enum(["open", "registered"]), "open: a terminal is known from its first command on"),
  refunds: described(
    z.enum(["off", "silent", "notified"]),
    "off: a REFUND is refused; silent: it is run, without an IPN; notified: with one, which the specification lacks",
  ),
  reports: described(
    z.strictObject({
      identity: described(
        z.enum(["externalId", "externalId+command"]).optional(),
        "externalId+command: a Sale and its Void may have one externalId",
      ),
      amounts: described(z.enum(["major", "minor"]).optional(), "minor: digits in the currency's smallest unit"),
      zeroAmounts: described(
        z.enum(["declined", "any"]).optional(),
        "any: a verified card is a success of the amount 0",
      ),
      responseCodes: described(z.enum(["1987", "1993"]).optional(), "1993: isoResponseCode is an action code"),
      schemes: described(
        z.record(z.string(), z.string()).optional(),
        "The cardScheme to send for a scheme beyond the specification's table, which is sent empty otherwise",
      ),
    }),
    "How the operator's switch writes its reports",
  ),
};

const partnerInput = z.strictObject({ ...required, ...z.strictObject(optional).partial().shape });

/** As documented: the registry judges it, so that every bad setting is named at once. */
export const partnerInputSchema = component(
  partnerInput,
  "PartnerRegistration",
  "What a partner agreed with the operator",
);
export const partnerPatchSchema = component(partnerInput.partial(), "PartnerPatch", "The settings to change");

export const newPartnerSchema = component(
  z.object({
    id: z.uuid(),
    apiKey: described(z.string(), "pb_ and base64url"),
    encryptionKey: described(z.string(), "base64 of 32 bytes"),
    signingKey: described(z.string(), "base64 of 32 bytes"),
    webhookSecret: described(z.string(), "whsec_ and base64 of 32 bytes"),
  }),
  "NewPartner",
  "A new partner's id and keys. The keys are shown this once",
);

const keyKind = z.enum(["apiKey", "encryptionKey", "signingKey", "webhookSecret"]);
const time = z.iso.datetime();

const keyVersion = component(
  z.object({
    id: z.uuid(),
    kind: z.enum([...keyKind.options, "callbackKey"]),
    activeFrom: time,
    expiresAt: time.nullable(),
    seals: described(z.int(), "Of an encryption key: how often it sealed, at most").optional(),
    name: described(z.string(), "Of an API key beside the first one: what it is for").optional(),
    scopes: scopesSchema.optional(),
    lastUsedAt: described(time.nullable(), "Of an API key, to the minute; null: never").optional(),
    createdAt: time,
  }),
  "KeyVersion",
  "A version of a key; never the key itself",
);

const record = {
  id: z.uuid(),
  state: described(z.enum(["active", "paused", "disabled"]), "paused: commands go on, deliveries wait"),
  settings: z.object({ ...required, ...optional }),
  keys: z.array(keyVersion),
  createdAt: time,
  updatedAt: time,
};

export const partnerSchema = component(z.object(record), "Partner", "A partner as registered");
export const partnerPageSchema = z.object({ items: z.array(partnerSchema), next: z.string().nullable() });
export const selfSchema = component(
  z.object({
    ...record,
    egressAddresses: described(z.array(z.string()), "Where callbacks come from: for your whitelist"),
    proofPublicKey: described(
      z.string(),
      "Proofs of delivery are checked with it: Ed25519, SubjectPublicKeyInfo in base64",
    ),
  }),
  "Self",
  "The calling partner, as registered",
);

export const rotateBody = component(
  z.strictObject({
    key: keyKind,
    overlapHours: described(z.number().min(0).max(720), "How long the old version stands"),
  }),
  "Rotation",
  "Which key to replace",
);
export const rotatedSchema = component(
  z.object({
    id: z.uuid(),
    kind: keyKind,
    secret: described(z.string(), "Shown this once"),
    activeFrom: described(time, "From then on it seals and signs: install it before"),
    expiresOld: time,
  }),
  "RotatedKey",
  "The new version",
);
