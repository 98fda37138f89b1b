import { z } from "zod";
import { detailSchema } from "./notification.ts";
import { component, described } from "./registry.ts";

/** A notification as the operator sees it. */
export const inspectedSchema = component(
  detailSchema.extend({
    events: described(
      z.array(z.object({ kind: z.string(), at: z.iso.datetime(), detail: z.record(z.string(), z.unknown()) })),
      "What was recorded about it and its transaction, the oldest first; of very many, the newest 100",
    ),
  }),
  "InspectedNotification",
  "A notification with its attempts and events",
);

export const explainedSchema = component(
  z.object({
    kind: z.enum(["card", "settlement"]),
    ipn: described(z.record(z.string(), z.unknown()), "Every field under its name on the wire, with its signature"),
    signed: z.object({
      mode: z.enum(["fields", "whole"]),
      text: described(z.string(), "The signed string (section 5.1)"),
      keyId: z.string(),
    }),
    cipher: z.string(),
    encoding: z.string(),
    url: described(z.string().nullable(), "Where it would go now"),
    encryptionKeyId: z.string(),
    headers: z.record(z.string(), z.string()),
    body: described(z.string(), "As POSTed: the IPN encrypted"),
  }),
  "ExplainedNotification",
  "What an attempt would be made of now",
);

const { waiting: _, ...proved } = detailSchema.shape;

export const proofSchema = component(
  z.object({
    proof: z.object({
      issuedAt: z.iso.datetime(),
      contentSha256: described(z.string(), "Of the content as it was committed with the transaction"),
      ...proved,
    }),
    signature: described(
      z.object({ algorithm: z.literal("Ed25519"), publicKey: z.string(), value: z.string() }),
      "Over the canonical JSON (RFC 8785) of `proof`; the key is SubjectPublicKeyInfo, both in base64",
    ),
  }),
  "ProofOfDelivery",
  "A notification's history, signed for a dispute",
);
