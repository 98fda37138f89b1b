import { parseJson } from "@paybell/contract";
import { z } from "zod";
import { componentOf, described } from "../../input/descriptions.ts";
import type { AuditRecord } from "../../operators/audit.ts";
import { pageOf } from "../../page.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, responses } from "../operation.ts";
import { limit } from "../parameters.ts";
import { admin } from "../policy.ts";

const auditQuery = z.strictObject({
  actor: described(z.string().max(128), "An operator's name, or `partner <id>`").optional(),
  subject: described(z.string().max(128), "What was acted on: an id").optional(),
  action: described(z.string().max(128), "The operationId of the request, such as rotateKey").optional(),
  tokenId: described(z.string().max(128), "The id of the operator's token or of the partner's API key").optional(),
  address: described(z.string().max(128), "Where the caller was").optional(),
  from: z.iso.datetime({ offset: true }).optional(),
  to: z.iso.datetime({ offset: true }).optional(),
  after: described(
    z.string().regex(/^[1-9]\d{0,14}$/, "must be `next` of a page"),
    "`next` of the previous page",
  ).optional(),
  limit,
});

const nullableJson = described(z.unknown(), "The value before or after, without secrets; null if there is none");

export const auditPageSchema = componentOf("AuditPage", "Who did what, the newest first", {
  items: z.array(
    z.object({
      seq: z.int(),
      at: z.iso.datetime(),
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

const operation = operations("Operators");

export function auditRoutes(app: HttpApp, { audit }: HttpDependencies): void {
  app.get(
    "/operator/v1/audit",
    operation(admin.reads, "searchAudit", "See who did what", {
      querystring: auditQuery,
      response: responses([200, auditPageSchema, "A page"]),
    }),
    async ({ query }) => {
      const { from, to, after, limit, ...texts } = query;
      const records = await audit.search({
        ...texts,
        fromMs: from === undefined ? undefined : Date.parse(from),
        toMs: to === undefined ? undefined : Date.parse(to),
        before: after === undefined ? undefined : Number(after),
        limit: limit + 1,
      });
      return pageOf(records.map(auditView), limit, ({ seq }) => String(seq));
    },
  );
}

function auditView({ atMs, before, after, ...record }: AuditRecord) {
  return { ...record, at: new Date(atMs).toISOString(), before: shownState(before), after: shownState(after) };
}

/** A long one was cut, and is shown as the text it is. */
function shownState(json: string): unknown {
  if (json === "") return null;
  try {
    return parseJson(json);
  } catch {
    return json;
  }
}
