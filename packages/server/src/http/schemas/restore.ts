import { z } from "zod";
import { componentOf, described } from "../../input/descriptions.ts";

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

export const restoreSchema = componentOf(
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
