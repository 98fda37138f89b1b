import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { type Config, ConfigError } from "../config.ts";
import type { KafkaConnection } from "../intake/kafka/kafka.ts";

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
      tls: await tlsOptions(config),
      // A proxy in front of brokers selects one by the requested server name. An IP address is not a name.
      tlsServerName: kafkaBrokers.every(({ host }) => isIP(host) === 0),
    }),
    ...(mechanism !== null && { sasl: { mechanism, username, password } }),
  };
}

async function tlsOptions({ kafkaCaFile, kafkaCertificateFile, kafkaKeyFile }: Config) {
  const [ca, cert, key] = await Promise.all([
    readPem("PAYBELL_KAFKA_CA_FILE", kafkaCaFile),
    readPem("PAYBELL_KAFKA_CERTIFICATE_FILE", kafkaCertificateFile),
    readPem("PAYBELL_KAFKA_KEY_FILE", kafkaKeyFile),
  ]);
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

async function readPem(name: string, path: string | null): Promise<Buffer | undefined> {
  if (path === null) return undefined;
  return readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new ConfigError([`${name} (${path}) cannot be read: ${error.code ?? error.message}`]);
  });
}
