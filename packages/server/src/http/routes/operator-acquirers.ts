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
import { operations, responses } from "../schemas/problem.ts";

const operation = operations("Acquirers");

const path = "/operator/v1/acquirers/:name";
const params = z.object({ name: described(z.string(), "The acquirer's name") });
const found = [200, acquirerSchema, "The acquirer"] as const;

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
    operation("putAcquirer", "Register or change an acquirer", {
      description: "Running instances apply it within seconds, and lose no answer in flight.",
      params,
      body: acquirerBody,
      response: responses(found),
    }),
    async (request) => acquirers.put(request.params.name, request.body),
  );
  app.get(
    "/operator/v1/acquirers",
    operation(
      "listAcquirers",
      "List the registered acquirers, in the order of their names, and the one of the settings",
      { response: responses([200, acquirerListSchema, "All of them"]) },
    ),
    async () => {
      const { kind, health } = settingsAcquirer();
      return { ofSettings: { kind, link: linkOf(health) }, items: (await acquirers.list()).map(withLink) };
    },
  );
  app.get(
    `${path}/terminals`,
    operation("listAcquirerTerminals", "List the first 500 terminals of a registered acquirer", {
      params,
      response: responses([200, acquirerTerminalsSchema, "By partner and tid"]),
    }),
    async (request) => {
      const found = await acquirers.terminals(request.params.name, terminalsMax + 1);
      return { items: found.slice(0, terminalsMax), isCut: found.length > terminalsMax };
    },
  );
  app.get(
    path,
    operation("getAcquirer", "Get an acquirer", {
      params,
      response: responses([200, acquirerStateSchema, "The acquirer"], "not_found"),
    }),
    async (request) => {
      const acquirer = await acquirers.find(request.params.name);
      if (acquirer === undefined) throw new ServiceError("not_found", "There is no such acquirer.");
      return withLink(acquirer);
    },
  );
  app.delete(
    path,
    operation("removeAcquirer", "Remove an acquirer", {
      description: "Refused while a terminal names it, or a Reversal goes to it.",
      params,
      response: responses([200, acquirerSchema, "The acquirer as it was"], "not_found", "acquirer_in_use"),
    }),
    async (request) => acquirers.remove(request.params.name),
  );
}
