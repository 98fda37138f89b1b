import { z } from "zod";
import type { AcquirerHealth } from "../../acquirer/acquirer.ts";
import type { AcquirerRecord } from "../../acquirer/registered/registry.ts";
import { bodyOf, component, componentOf, described } from "../../input/descriptions.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, responses } from "../operation.ts";
import { noSuch } from "../parameters.ts";
import { admin, viewer } from "../policy.ts";

const json = z.record(z.string(), z.unknown());
const pem = z.string().max(32_768);
const shared = {
  profile: described(json, "The host's profile"),
  hosts: described(z.array(z.string().max(300)), "Each as name:port, in the order in which they are tried"),
  tls: described(z.enum(["on", "off"]), "off: for a private line that is encrypted by other means"),
  ca: described(pem, "PEM of the authorities of the hosts; empty: the well-known ones"),
  certificate: described(pem, "PEM of the client certificate; empty: none"),
};

const acquirerBody = bodyOf(
  "AcquirerRegistration",
  "An acquirer's host. What is left out stays as it is; a new acquirer needs a profile and hosts",
  {
    ...z.object(shared).partial().shape,
    key: described(pem, "PEM of the client certificate's key; empty removes it").optional(),
    macKey: described(z.string().max(64), "In hexadecimal: the key of the messages' MACs; empty removes it").optional(),
    keyEncryptionKey: described(
      z.string().max(64),
      "In hexadecimal: under it new keys of the MACs come over the link; empty removes it",
    ).optional(),
  },
);

const acquirerSchema = componentOf("Acquirer", "An acquirer as registered", {
  name: z.string(),
  ...shared,
  hasKey: described(z.boolean(), "Secrets are never shown"),
  hasMacKey: z.boolean(),
  hasKeyEncryptionKey: z.boolean(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});

const linkSchema = described(
  z.object({
    ok: z.boolean(),
    detail: z.string(),
    heardAt: described(z.iso.datetime().nullable(), "When the host last sent anything, such as an echo's answer"),
  }),
  "Whether this instance can ask it now: at which host, under which MAC key, or why not",
);

const acquirerStateSchema = component(
  acquirerSchema.extend({ link: linkSchema }),
  "AcquirerState",
  "An acquirer as registered, and its link",
);

const acquirerListSchema = componentOf("AcquirerList", "The acquirers", {
  ofSettings: described(z.object({ kind: z.string(), link: linkSchema }), "The acquirer of the settings"),
  items: z.array(acquirerStateSchema),
});

const acquirerTerminalsSchema = componentOf("AcquirerTerminals", "Terminals whose commands go to an acquirer", {
  items: z.array(z.object({ partnerId: z.uuid(), tid: z.string(), mid: z.string(), merchantName: z.string() })),
  isCut: described(z.boolean(), "There are more"),
});

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
    operation(admin.changes("acquirer"), "putAcquirer", "Register or change an acquirer", {
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
      viewer.reads,
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
    operation(viewer.reads, "listAcquirerTerminals", "List the first 500 terminals of a registered acquirer", {
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
    operation(viewer.reads, "getAcquirer", "Get an acquirer", {
      params,
      response: responses([200, acquirerStateSchema, "The acquirer"], "not_found"),
    }),
    async (request) => {
      const acquirer = await acquirers.find(request.params.name);
      return acquirer === undefined ? noSuch("acquirer") : withLink(acquirer);
    },
  );
  app.delete(
    path,
    operation(admin.changes("acquirer"), "removeAcquirer", "Remove an acquirer", {
      description: "Refused while a terminal names it, or a Reversal goes to it.",
      params,
      response: responses([200, acquirerSchema, "The acquirer as it was"], "not_found", "acquirer_in_use"),
    }),
    async (request) => acquirers.remove(request.params.name),
  );
}
