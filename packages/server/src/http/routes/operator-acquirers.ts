import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import type { HttpApp, HttpParts } from "../parts.ts";
import { acquirerBody, acquirerListSchema, acquirerSchema } from "../schemas/acquirer.ts";
import { responses } from "../schemas/problem.ts";
import { described } from "../schemas/registry.ts";

const tags = ["Acquirers"];
const path = "/operator/v1/acquirers/:name";
const params = z.object({ name: described(z.string(), "The acquirer's name") });
const found = { 200: { schema: acquirerSchema, description: "The acquirer" } };

/** Acquirers beside the one of the settings. */
export function operatorAcquirerRoutes(app: HttpApp, { acquirers }: HttpParts): void {
  app.put(
    path,
    {
      schema: {
        operationId: "putAcquirer",
        tags,
        summary: "Register or change an acquirer",
        description: "Running instances take it up within seconds, and lose no answer in flight.",
        params,
        body: acquirerBody,
        response: responses(found),
      },
    },
    async (request) => acquirers.put(request.params.name, request.body),
  );
  app.get(
    "/operator/v1/acquirers",
    {
      schema: {
        operationId: "listAcquirers",
        tags,
        summary: "List the registered acquirers, in the order of their names",
        response: responses({ 200: { schema: acquirerListSchema, description: "All of them" } }),
      },
    },
    async () => ({ items: [...(await acquirers.list())] }),
  );
  app.get(
    path,
    {
      schema: {
        operationId: "getAcquirer",
        tags,
        summary: "Get an acquirer",
        params,
        response: responses(found, "not_found"),
      },
    },
    async (request) => {
      const acquirer = await acquirers.find(request.params.name);
      if (acquirer === undefined) throw new ServiceError("not_found", "There is no such acquirer.");
      return acquirer;
    },
  );
  app.delete(
    path,
    {
      schema: {
        operationId: "removeAcquirer",
        tags,
        summary: "Remove an acquirer",
        description: "Refused while a terminal names it, or a Reversal goes to it.",
        params,
        response: responses(
          { 200: { schema: acquirerSchema, description: "The acquirer as it was" } },
          "not_found",
          "acquirer_in_use",
        ),
      },
    },
    async (request) => acquirers.remove(request.params.name),
  );
}
