import { z } from "zod";
import { component, componentOf, described } from "../../input/descriptions.ts";
import { detailSchema } from "./notification.ts";

/** A notification as the operator sees it. */
export const inspectedSchema = component(
  detailSchema.extend({
    events: described(
      z.array(z.object({ kind: z.string(), at: z.iso.datetime(), detail: z.record(z.string(), z.unknown()) })),
      "Events about it and its transaction, oldest first; at most the newest 100",
    ),
  }),
  "InspectedNotification",
  "A notification with its attempts and events",
);

export const explainedSchema = componentOf("ExplainedNotification", "What an attempt would send now", {
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
});

const { waiting: _, ...proved } = detailSchema.shape;

const issued = {
  issuedAt: z.iso.datetime(),
  contentSha256: described(z.string(), "Of the content as it was committed with the transaction"),
};

/** The proof after the day of history was dropped. */
const shortProof = z.object({
  ...issued,
  id: z.uuid(),
  partnerId: z.uuid(),
  transactionId: z.uuid().nullable(),
  command: z.string(),
  createdAt: z.iso.datetime(),
  state: z.literal("accepted"),
  startedAt: described(
    z.iso.datetime(),
    "Start of the accepted attempt; `durationMs`, `url`, `address`, `httpStatus` and `keyId` are of the same attempt",
  ),
  durationMs: z.int(),
  url: z.string(),
  address: z.string().nullable(),
  httpStatus: z.int().nullable(),
  keyId: z.string().nullable(),
  attempts: described(z.int(), "The number of all attempts"),
});

export const proofSchema = componentOf("ProofOfDelivery", "A notification's history, signed for a dispute", {
  proof: z.union([z.object({ ...issued, ...proved }), shortProof]),
  signature: described(
    z.object({ algorithm: z.literal("Ed25519"), publicKey: z.string(), value: z.string() }),
    "Over the canonical JSON (RFC 8785) of `proof`; the key is SubjectPublicKeyInfo, both in base64",
  ),
});
