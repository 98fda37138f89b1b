import { z } from "zod";
import type { RestoreReport } from "../backups/restores.ts";
import { componentOf, described } from "../input/descriptions.ts";
import { isoOrNull, isoTime } from "../notifications/view.ts";
import type { HttpApp, HttpDependencies } from "./dependencies.ts";
import { answer, operations, responses } from "./operation.ts";
import { admin, anybody, viewer } from "./policy.ts";

const settingListSchema = componentOf("Settings", "The settings of the instance that answered, without secrets", {
  items: z.array(
    z.object({
      name: described(z.string(), "Its environment variable"),
      section: described(z.string(), "Its topic, as in the reference"),
      value: described(z.string().nullable(), "The value in use; null: not set; of a secret, only that it is set"),
      default: z.string().nullable(),
      source: described(z.enum(["environment", "default"]), "Where its value comes from"),
      unit: z.string().nullable(),
      meaning: z.string(),
    }),
  ),
});

const operation = operations("Service");
const restoreOperation = operations("Deliveries");

const checkSchema = z.object({
  ready: z.boolean(),
  checks: z.record(z.string(), z.object({ ok: z.boolean(), detail: z.string() })),
});

/** Whether the process lives, and stays: for everybody, and for the partners' proxy. */
export function aliveRoute(app: HttpApp, { isStopping }: Pick<HttpDependencies, "isStopping">): void {
  app.get(
    "/healthz",
    operation(anybody, "isAlive", "Whether the process is alive", {
      response: {
        ...responses([200, z.object({ ok: z.literal(true) }), "It is"]),
        ...answer(503, z.object({ ok: z.literal(false) }), "It stops: use another instance"),
      },
    }),
    async (_, reply) => {
      if (isStopping()) return reply.code(503).send({ ok: false });
      return { ok: true as const };
    },
  );
}

/** Health and metrics: both name what the service depends on. */
export function systemRoutes(app: HttpApp, { health, metrics }: HttpDependencies): void {
  app.get(
    "/readyz",
    operation(anybody, "isReady", "Whether the service can work", {
      response: {
        ...responses([200, checkSchema, "It can"]),
        ...answer(503, checkSchema, "It cannot: see what is not ok"),
      },
    }),
    async (_, reply) => {
      const state = await health();
      return reply.code(state.ready ? 200 : 503).send(state);
    },
  );
  app.get(
    "/metrics",
    operation(anybody, "getMetrics", "What the service counts, for Prometheus", {
      response: responses([200, z.string(), "Prometheus text format", "text/plain"]),
    }),
    async (_, reply) => reply.type(metrics.registry.contentType).send(await metrics.text()),
  );
}

/**
 * The settings of this instance, to look at: they are changed where it is started. The last restore of the database
 * from a backup, and what it holds.
 */
export function serviceRoutes(app: HttpApp, { settings, restores }: HttpDependencies): void {
  app.get(
    "/operator/v1/settings",
    operation(viewer.reads, "listSettings", "See the settings, with their sources and defaults", {
      response: responses([200, settingListSchema, "All of them"]),
    }),
    async () => ({ items: settings }),
  );
  app.get(
    "/operator/v1/restore",
    restoreOperation(viewer.reads, "readRestore", "See what is held after a restore of the database", {
      response: responses([200, restoreSchema, "The last restore"]),
    }),
    async () => restoreView(await restores.report()),
  );
  app.post(
    "/operator/v1/restore/release",
    restoreOperation(
      admin.acts("input"),
      "releaseRestore",
      "Let commands end that were in flight in the restored database",
      {
        description:
          "Each ends as ERROR 96, with its IPN and, where it may have charged, a Reversal: ask the acquirer before. " +
          "Notifications with the reason `restored` stay parked until they are redelivered.",
        response: responses([200, restoreSchema, "The last restore"]),
      },
    ),
    async () => restoreView(await restores.release()),
  );
}

function restoreView(report: RestoreReport | undefined) {
  if (report === undefined) return { restore: null };
  const { restore, shares, commands } = report;
  return {
    restore: {
      name: restore.name,
      endsAt: isoOrNull(restore.endsAtMs),
      heldAt: isoTime(restore.heldAtMs),
      held: restore.held,
      releasedAt: isoOrNull(restore.releasedAtMs),
      partners: shares.map(({ partnerId, count, attempted, oldestAtMs, newestAtMs }) => ({
        partnerId,
        count,
        attempted,
        oldestAt: isoTime(oldestAtMs),
        newestAt: isoTime(newestAtMs),
      })),
      commands: commands.map(({ partnerId, id, command, reqId, createdAtMs }) => ({
        partnerId,
        transactionId: id,
        command,
        reqId,
        createdAt: isoTime(createdAtMs),
      })),
    },
  };
}

const time = z.iso.datetime();

const shareSchema = z.object({
  partnerId: z.uuid(),
  count: described(z.int(), "Notifications that were pending, and are still parked"),
  attempted: described(z.int(), "Those of them that were tried before the restored ledger ends"),
  oldestAt: time,
  newestAt: time,
});

const commandSchema = z.object({
  partnerId: z.uuid(),
  transactionId: z.uuid(),
  command: z.string(),
  reqId: z.string().nullable(),
  createdAt: time,
});

const restoreSchema = componentOf(
  "RestoreReport",
  "The last restore of the database from a backup; null: there was none",
  {
    restore: z
      .object({
        name: z.string(),
        endsAt: described(
          time.nullable(),
          "The restored ledger ends here: what was accepted later is lost; null: no instance ran then",
        ),
        heldAt: described(time, "When a start put aside what was pending"),
        held: described(z.int(), "Notifications that it parked"),
        releasedAt: described(time.nullable(), "Null: commands that were in flight are held"),
        partners: described(z.array(shareSchema), "What is still parked with the reason `restored`"),
        commands: described(
          z.array(commandSchema),
          "Commands that were in flight: the acquirer alone knows their outcome. At most 500",
        ),
      })
      .nullable(),
  },
);
