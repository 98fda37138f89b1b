import { z } from "zod";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";
import { roles } from "../../operators/operator.ts";
import { limit } from "./problem.ts";
import { confirmedProposal } from "./proposal.ts";

const time = z.iso.datetime();
const operator = {
  id: z.uuid(),
  name: z.string(),
  role: described(z.enum(roles), "viewer reads; operator acts, too; admin registers, rotates keys and adds operators"),
  createdAt: time,
  expiresAt: time,
  lastUsedAt: described(time.nullable(), "To the minute"),
  revokedAt: time.nullable(),
  subject: described(
    z.string().nullable(),
    "Of a token that a sign-in by OpenID made: issuer and `sub`. Null of one that an admin made",
  ),
};

export const operatorSchema = componentOf("Operator", "An operator and what they may", operator);

export const newOperatorSchema = componentOf("NewOperator", "An operator with their token", {
  ...operator,
  token: described(z.string(), "Bearer token of the operator API, in this answer only"),
});

export const operatorBody = bodyOf("OperatorToAdd", "Who becomes an operator", {
  name: z.string(),
  role: z.enum(roles),
  expiresInDays: described(z.int(), "Default 90, at most 366").optional(),
  proposal: confirmedProposal,
});

export const operatorListSchema = z.object({ items: z.array(operatorSchema) });

export const auditQuery = z.strictObject({
  actor: described(z.string().max(128), "An operator's name, or `partner <id>`").optional(),
  subject: described(z.string().max(128), "What was acted on: an id").optional(),
  action: described(z.string().max(128), "The operationId of the request, such as rotateKey").optional(),
  tokenId: described(z.string().max(128), "The id of the operator's token or of the partner's API key").optional(),
  address: described(z.string().max(128), "Where the caller was").optional(),
  from: z.iso.datetime({ offset: true }).optional(),
  to: z.iso.datetime({ offset: true }).optional(),
  after: described(z.string().regex(/^[1-9]\d{0,14}$/), "`next` of the previous page").optional(),
  limit,
});

const nullableJson = described(z.unknown(), "The value before or after, without secrets; null if there is none");

export const auditPageSchema = componentOf("AuditPage", "Who did what, the newest first", {
  items: z.array(
    z.object({
      seq: z.int(),
      at: time,
      actor: z.string(),
      role: z.string(),
      tokenId: z.string(),
      address: z.string(),
      action: described(z.string(), "The operationId of the request"),
      subject: z.string(),
      before: nullableJson,
      after: nullableJson,
      hash: described(z.string(), "Of this entry and the one before it"),
    }),
  ),
  next: z.string().nullable(),
});
