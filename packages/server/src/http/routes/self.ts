import { ServiceError } from "../../errors.ts";
import type { PartnerRoutes } from "../dependencies.ts";
import { selfSchema } from "../schemas/partner.ts";
import { operations, responses } from "../schemas/problem.ts";

const operation = operations("Self");

/** GET /v1/self */
export function selfRoutes({ app, parts, callers }: PartnerRoutes): void {
  app.get(
    "/v1/self",
    operation("getSelf", "Get your settings, key versions and our egress addresses", {
      response: responses([200, selfSchema, "The calling partner"]),
    }),
    async (request) => {
      const record = await parts.registry.find(callers.partner(request).id);
      if (record === undefined) throw new ServiceError("not_found");
      return { ...record, egressAddresses: parts.config.egressAddresses, proofPublicKey: parts.proofPublicKey };
    },
  );
}
