import { z } from "zod";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";
import { auditMade } from "../audit-trail.ts";
import type { OperatorCallers } from "../callers/operator-callers.ts";
import { type ViewLinks, viewMinutesMax } from "../callers/view-links.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, responses } from "../operation.ts";
import { partnerParams, requireId, requirePartner, requirePartnerId } from "../parameters.ts";
import { operator } from "../policy.ts";

const operation = operations("Partners");

const linkParams = z.object({
  ...partnerParams.shape,
  linkId: described(z.string(), "The link's id, from its answer or the audit"),
});
const body = bodyOf("ViewLinkToMake", "How long a link shows a partner's pages", {
  minutes: described(
    z.int().min(1).max(viewMinutesMax),
    `How long it is valid; ${viewMinutesMax} by default`,
  ).optional(),
});
const made = componentOf("ViewLink", "A link that shows a partner's pages in the console. It is shown only once", {
  id: z.uuid(),
  url: described(z.string(), "Begins with PAYBELL_PARTNERS_URL; where that is not set, with /console/"),
  expiresAt: z.iso.datetime(),
});

/** Links by which somebody reads a partner's pages in the console without its API key. */
export function viewLinkRoutes(
  app: HttpApp,
  { config, registry }: Pick<HttpDependencies, "config" | "registry">,
  viewLinks: ViewLinks,
  callers: Pick<OperatorCallers, "actor">,
): void {
  app.post(
    "/operator/v1/partners/:id/view-links",
    operation(
      operator.acts("link"),
      "makeViewLink",
      "Make a link that shows a partner's pages for up to an hour, read only",
      {
        description:
          "Whoever has it sees what the partner sees, from any address that reaches the console. It changes nothing, " +
          "and does not show the content of IPNs. The audit has who made it, and each time it is opened.",
        params: partnerParams,
        body: body.optional(),
        response: responses([201, made, "The link"], "not_found"),
      },
    ),
    async (request, reply) => {
      const partner = await requirePartner(registry, request.params.id);
      const { id, token, expiresAt } = viewLinks.make(
        partner.id,
        callers.actor(request).name,
        request.body?.minutes ?? viewMinutesMax,
      );
      auditMade(request, id);
      // After the #: a browser sends it to no server, so that no access log has it.
      const path = `/console/#view=${token}`;
      const url = config.partnersUrl === null ? path : new URL(path, config.partnersUrl).href;
      return reply.code(201).send({ id, url, expiresAt });
    },
  );
  app.post(
    "/operator/v1/partners/:id/view-links/:linkId/revoke",
    operation(operator.acts("link"), "revokeViewLink", "Revoke a link that shows a partner's pages", {
      params: linkParams,
      response: responses(
        [200, z.object({ id: z.uuid() }), "Every instance refuses it within two seconds"],
        "not_found",
      ),
    }),
    async (request) => {
      const id = requireId<"key">(request.params.linkId, "link");
      await viewLinks.revoke(requirePartnerId(request.params.id), id);
      return { id };
    },
  );
}
