import type { RestoreReport } from "../../backups/restores.ts";
import { isoTime } from "../../notifications/view.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, responses } from "../schemas/problem.ts";
import { restoreSchema } from "../schemas/restore.ts";

const operation = operations("Deliveries");

/** The last restore of the database from a backup, and what it holds. */
export function operatorRestoreRoutes(app: HttpApp, { restores }: HttpDependencies): void {
  app.get(
    "/operator/v1/restore",
    operation("readRestore", "See what is held after a restore of the database", {
      response: responses([200, restoreSchema, "The last restore"]),
    }),
    async () => restoreView(await restores.report()),
  );
  app.post(
    "/operator/v1/restore/release",
    operation("releaseRestore", "Let commands end that were in flight in the restored database", {
      description:
        "Each ends as ERROR 96, with its IPN and, where it may have charged, a Reversal: ask the acquirer before. " +
        "Notifications with the reason `restored` stay parked until they are redelivered.",
      response: responses([200, restoreSchema, "The last restore"]),
    }),
    async () => restoreView(await restores.release()),
  );
}

function restoreView(report: RestoreReport | undefined) {
  if (report === undefined) return { restore: null };
  const { restore, shares, commands } = report;
  return {
    restore: {
      name: restore.name,
      endsAt: timeOrNull(restore.endsAtMs),
      heldAt: isoTime(restore.heldAtMs),
      held: restore.held,
      releasedAt: timeOrNull(restore.releasedAtMs),
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

function timeOrNull(atMs: number | null): string | null {
  return atMs === null ? null : isoTime(atMs);
}
