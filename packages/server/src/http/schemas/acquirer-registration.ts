import { z } from "zod";
import { bodyOf, component, componentOf, described } from "../../input/descriptions.ts";

const json = z.record(z.string(), z.unknown());
const pem = z.string().max(32_768);
const shared = {
  profile: described(json, "The host's profile"),
  hosts: described(z.array(z.string().max(300)), "Each as name:port, in the order in which they are tried"),
  tls: described(z.enum(["on", "off"]), "off: for a private line that is encrypted by other means"),
  ca: described(pem, "PEM of the authorities of the hosts; empty: the well-known ones"),
  certificate: described(pem, "PEM of the client certificate; empty: none"),
};

export const acquirerBody = bodyOf(
  "AcquirerRegistration",
  "An acquirer's host. What is left out stays as it is; a new acquirer needs a profile and hosts",
  {
    ...z.object(shared).partial().shape,
    key: described(pem, "PEM of the client certificate's key; empty removes it").optional(),
    macKey: described(z.string().max(64), "In hexadecimal: the key of the messages' MACs; empty removes it").optional(),
    keyEncryptionKey: described(
      z.string().max(64),
      "In hexadecimal: under it new keys of the MACs come over the link; empty removes it",
    ).optional(),
  },
);

export const acquirerSchema = componentOf("Acquirer", "An acquirer as registered", {
  name: z.string(),
  ...shared,
  hasKey: described(z.boolean(), "Secrets are never shown"),
  hasMacKey: z.boolean(),
  hasKeyEncryptionKey: z.boolean(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});

const linkSchema = described(
  z.object({
    ok: z.boolean(),
    detail: z.string(),
    heardAt: described(z.iso.datetime().nullable(), "When the host last sent anything, such as an echo's answer"),
  }),
  "Whether this instance can ask it now: at which host, under which MAC key, or why not",
);

export const acquirerStateSchema = component(
  acquirerSchema.extend({ link: linkSchema }),
  "AcquirerState",
  "An acquirer as registered, and its link",
);

export const acquirerListSchema = componentOf("AcquirerList", "The acquirers", {
  ofSettings: described(z.object({ kind: z.string(), link: linkSchema }), "The acquirer of the settings"),
  items: z.array(acquirerStateSchema),
});

export const acquirerTerminalsSchema = componentOf("AcquirerTerminals", "Terminals whose commands go to an acquirer", {
  items: z.array(z.object({ partnerId: z.uuid(), tid: z.string(), mid: z.string(), merchantName: z.string() })),
  isCut: described(z.boolean(), "There are more"),
});
