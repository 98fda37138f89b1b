import { isIP } from "node:net";
import { readProfile } from "../acquirer/iso8583/profile/read.ts";
import type { Profile } from "../acquirer/iso8583/profile/schema.ts";
import type { AcquirerRegistry } from "../acquirer/registered/registry.ts";
import { Clearing } from "../clearing/clearing.ts";
import { ClearingFolder } from "../clearing/folder.ts";
import type { ClearingLayout } from "../clearing/read-file.ts";
import { systemClock } from "../clock.ts";
import { type Config, ConfigError, readTlsFiles } from "../config/config.ts";
import { badFields, ServiceError } from "../errors.ts";
import { FileDrop } from "../intake/file-drop/file-drop.ts";
import { makeFolders } from "../intake/file-drop/progress.ts";
import { type KafkaConnection, KafkaIntake } from "../intake/kafka.ts";
import type { IntakeParts } from "../intake/report-items.ts";
import type { Notifications } from "../notifications/notifications.ts";
import { postgresClearing } from "../store/clearing/clearing.ts";
import { PostgresIntakeLocks } from "../store/intake-locks.ts";
import type { NamedAcquirer } from "./configured-acquirers.ts";
import type { Infrastructure } from "./infrastructure.ts";

/** A way for completions beside HTTP: started once the ledger runs, stopped before it ends. */
export interface Intake {
  start(): Promise<void>;
  stop(): Promise<void>;
}

export function openIntakes(infrastructure: Infrastructure, parts: IntakeParts): Intake {
  const intakes = [...fileDrops(infrastructure, parts), ...kafkaIntakes(infrastructure, parts)];
  const stop = async () => void (await Promise.all(intakes.map((intake) => intake.stop())));
  infrastructure.closing.push(stop);
  return {
    async start() {
      for (const intake of intakes) await intake.start();
    },
    stop,
  };
}

function fileDrops({ config, database, alerts, metrics, log }: Infrastructure, parts: IntakeParts): Intake[] {
  const { intakeFolder: folder } = config;
  if (folder === null) return [];
  const locks = new PostgresIntakeLocks(() => database.connectDirectly());
  const drop = new FileDrop({ ...parts, folder, locks, events: alerts, metrics, log });
  const start = async () => {
    await requireIntakeFolder(folder, makeFolders);
    drop.start();
  };
  return [{ start, stop: () => drop.stop() }];
}

function kafkaIntakes({ config, metrics, log }: Infrastructure, parts: IntakeParts): Intake[] {
  const { kafkaTopic: topic, kafkaDeadLetterTopic: deadLetterTopic, kafkaGroup: group } = config;
  if (config.kafkaBrokers.length === 0 || topic === null) return [];
  let intake: KafkaIntake | undefined;
  return [
    {
      async start() {
        const connection = await kafkaConnection(config);
        if (connection === undefined) return;
        intake = new KafkaIntake({ ...parts, connection, topic, deadLetterTopic, group, metrics, log });
        intake.start();
      },
      async stop() {
        await intake?.stop();
      },
    },
  ];
}

/** @throws ConfigError if PAYBELL_INTAKE_FOLDER cannot be used: otherwise its files would wait unnoticed */
export async function requireIntakeFolder(
  folder: NonNullable<Config["intakeFolder"]>,
  attempt: (folder: string) => Promise<void>,
): Promise<void> {
  await attempt(folder).catch((error: NodeJS.ErrnoException) => {
    const detail = error.code === "ENOENT" ? "does not exist" : `cannot be used: ${error.code ?? error.message}`;
    throw new ConfigError([`PAYBELL_INTAKE_FOLDER (${folder}) ${detail}`]);
  });
}

/**
 * The connection to the brokers of the settings; undefined if none are set.
 *
 * @throws ConfigError if a file cannot be read
 */
export async function kafkaConnection(config: Config): Promise<KafkaConnection | undefined> {
  const { kafkaBrokers, kafkaTls, kafkaSasl: mechanism, kafkaUser, kafkaPassword } = config;
  if (kafkaBrokers.length === 0) return undefined;
  const username = kafkaUser ?? "";
  const password = kafkaPassword ?? "";
  return {
    bootstrapBrokers: [...kafkaBrokers],
    ...(kafkaTls === "on" && {
      tls: await readTlsFiles("PAYBELL_KAFKA", {
        ca: config.kafkaCaFile,
        certificate: config.kafkaCertificateFile,
        key: config.kafkaKeyFile,
      }),
      // A proxy in front of brokers selects one by the requested server name. An IP address is not a name.
      tlsServerName: kafkaBrokers.every(({ host }) => isIP(host) === 0),
    }),
    ...(mechanism !== null && { sasl: { mechanism, username, password } }),
  };
}

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
    store: postgresClearing(database, { alerting }),
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
