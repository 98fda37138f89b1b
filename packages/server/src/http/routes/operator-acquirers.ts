import { z } from "zod";
import type { AcquirerHealth } from "../../acquirer/acquirer.ts";
import type { AcquirerRecord } from "../../acquirer/registered/registry.ts";
import { ServiceError } from "../../errors.ts";
import { described } from "../../input/descriptions.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import {
  acquirerBody,
  acquirerListSchema,
  acquirerSchema,
  acquirerStateSchema,
  acquirerTerminalsSchema,
} from "../schemas/acquirer-registration.ts";
import { responses } from "../schemas/problem.ts";

const tags = ["Acquirers"];
const path = "/operator/v1/acquirers/:name";
const params = z.object({ name: described(z.string(), "The acquirer's name") });
const found = { 200: { schema: acquirerSchema, description: "The acquirer" } };

const terminalsMax = 500;

/** Acquirers in addition to the one of the settings. */
export function operatorAcquirerRoutes(app: HttpApp, dependencies: HttpDependencies): void {
  const { acquirers, acquirerHealth, settingsAcquirer, clock } = dependencies;
  const linkOf = ({ ok, detail, silentMs }: AcquirerHealth) => {
    const heardAt = silentMs === undefined ? null : new Date(clock.nowMs() - silentMs).toISOString();
    return { ok, detail, heardAt };
  };
  const withLink = (acquirer: AcquirerRecord) => ({ ...acquirer, link: linkOf(acquirerHealth(acquirer.name)) });
  app.put(
    path,
    {
      schema: {
        operationId: "putAcquirer",
        tags,
        summary: "Register or change an acquirer",
        description: "Running instances apply it within seconds, and lose no answer in flight.",
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
        summary: "List the registered acquirers, in the order of their names, and the one of the settings",
        response: responses({ 200: { schema: acquirerListSchema, description: "All of them" } }),
      },
    },
    async () => {
      const { kind, health } = settingsAcquirer();
      return { ofSettings: { kind, link: linkOf(health) }, items: (await acquirers.list()).map(withLink) };
    },
  );
  app.get(
    `${path}/terminals`,
    {
      schema: {
        operationId: "listAcquirerTerminals",
        tags,
        summary: "List the first 500 terminals of a registered acquirer",
        params,
        response: responses({ 200: { schema: acquirerTerminalsSchema, description: "By partner and tid" } }),
      },
    },
    async (request) => {
      const found = await acquirers.terminals(request.params.name, terminalsMax + 1);
      return { items: found.slice(0, terminalsMax), isCut: found.length > terminalsMax };
    },
  );
  app.get(
    path,
    {
      schema: {
        operationId: "getAcquirer",
        tags,
        summary: "Get an acquirer",
        params,
        response: responses({ 200: { schema: acquirerStateSchema, description: "The acquirer" } }, "not_found"),
      },
    },
    async (request) => {
      const acquirer = await acquirers.find(request.params.name);
      if (acquirer === undefined) throw new ServiceError("not_found", "There is no such acquirer.");
      return withLink(acquirer);
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
