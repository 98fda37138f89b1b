import { Readable } from "node:stream";
import { z } from "zod";
import { componentOf, described } from "../../input/descriptions.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, partnerParams, requirePartnerId, responses } from "../schemas/problem.ts";

const operation = operations("Partners");

const removedSchema = componentOf("RemovedPartner", "A partner that was deleted after its archive was written", {
  id: z.uuid(),
  records: described(z.int(), "Rows that were deleted, the partner's own included"),
});

/** Partners that have left. */
export function operatorPartnerArchiveRoutes(app: HttpApp, { archive }: HttpDependencies): void {
  app.get(
    "/operator/v1/partners/:id/archive",
    operation("exportPartner", "Export all that is stored of a partner that has left", {
      description:
        "One JSON object a line, `{table, row}`. Keys and cards are left out. The partner must be disabled, with " +
        "nothing pending, no command in flight and no open batch.",
      params: partnerParams,
      response: responses([200, z.string(), "The partner", "application/jsonl"], "not_found", "partner_in_use"),
    }),
    async (request, reply) => {
      const pages = await archive.export(requirePartnerId(request.params.id));
      return reply.type("application/jsonl").send(Readable.from(text(pages), { objectMode: false }));
    },
  );
  app.delete(
    "/operator/v1/partners/:id",
    operation("removePartner", "Delete a partner whose archive was written", {
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

async function* text(pages: AsyncIterable<readonly string[]>): AsyncGenerator<string> {
  for await (const lines of pages) yield lines.map((line) => `${line}\n`).join("");
}
