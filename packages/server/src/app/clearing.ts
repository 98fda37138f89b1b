import { readProfile } from "../acquirer/iso8583/profile/read.ts";
import type { Profile } from "../acquirer/iso8583/profile/schema.ts";
import type { AcquirerRegistry } from "../acquirer/registered/registry.ts";
import { Clearing } from "../clearing/clearing.ts";
import { ClearingFolder } from "../clearing/folder.ts";
import type { ClearingLayout } from "../clearing/line.ts";
import { systemClock } from "../clock.ts";
import { badFields, ServiceError } from "../errors.ts";
import type { Notifications } from "../notifications/notifications.ts";
import { PostgresClearing } from "../store/clearing/clearing.ts";
import { PostgresIntakeLocks } from "../store/intake-locks.ts";
import type { NamedAcquirer } from "./acquirer.ts";
import type { Infrastructure } from "./infrastructure.ts";
import type { Intake } from "./intake.ts";

interface ClearingWiring {
  readonly ofSettings: NamedAcquirer["acquirer"];
  readonly registry: Pick<AcquirerRegistry, "find">;
  readonly notifications: Pick<Notifications, "prove">;
}

/** The comparison of acquirers' clearing files with the ledger. */
export function wireClearing(
  { database, config, alerting, alerts, log, closing }: Infrastructure,
  { ofSettings, registry, notifications }: ClearingWiring,
): { readonly clearing: Clearing; readonly clearingIntake: Intake } {
  const profileOf = async (acquirer: string): Promise<Profile | null | undefined> => {
    if (acquirer === "") return ofSettings !== null && "profile" in ofSettings ? ofSettings.profile : null;
    const found = await registry.find(acquirer);
    return found && readProfile(JSON.stringify(found.profile));
  };
  const clearing = new Clearing({
    store: new PostgresClearing(database, { alerting }),
    layoutOf: async (acquirer) => {
      const profile = await profileOf(acquirer);
      return profile === undefined ? undefined : layoutIn(profile);
    },
    prove: (notificationId) =>
      notifications.prove(notificationId).catch((error: unknown) => {
        if (error instanceof ServiceError) return undefined;
        throw error;
      }),
    nowMs: systemClock.nowMs,
    log,
    keptDays: config.ledgerDays,
  });
  const { clearingFolder: folder } = config;
  const locks = new PostgresIntakeLocks(() => database.connectDirectly());
  const drop = folder === null ? undefined : new ClearingFolder({ folder, clearing, locks, events: alerts, log });
  const stop = async () => {
    await drop?.stop();
    await clearing.stop();
  };
  closing.push(stop);
  const start = async () => {
    clearing.start();
    drop?.start();
  };
  return { clearing, clearingIntake: { start, stop } };
}

function layoutIn(profile: Profile | null): ClearingLayout {
  const section = profile?.clearing;
  if (profile !== null && section !== undefined) {
    return { section, currencies: profile.currencies, timeZone: profile.localTimeZone };
  }
  const message = "acquirer: its profile does not say how its clearing files are read, in `clearing`.";
  throw badFields([{ field: "acquirer", code: "invalid_value", message }]);
}
