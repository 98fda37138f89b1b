import { type Config, ConfigError } from "../config.ts";
import { FileDrop } from "../intake/file-drop/file-drop.ts";
import { makeFolders } from "../intake/file-drop/progress.ts";
import type { IntakeParts } from "../intake/items.ts";
import { KafkaIntake } from "../intake/kafka/kafka.ts";
import { PostgresIntakeLocks } from "../store/intake-locks.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { kafkaConnection } from "./kafka.ts";

/** A way for completions beside HTTP: started once the ledger runs, stopped before it ends. */
export interface Intake {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** The intakes that the settings name. */
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
    await requireIntakeFolder(folder);
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
export async function requireIntakeFolder(folder: NonNullable<Config["intakeFolder"]>): Promise<void> {
  await makeFolders(folder).catch((error: NodeJS.ErrnoException) => {
    const detail = error.code === "ENOENT" ? "does not exist" : `cannot be used: ${error.code ?? error.message}`;
    throw new ConfigError([`PAYBELL_INTAKE_FOLDER (${folder}) ${detail}`]);
  });
}
