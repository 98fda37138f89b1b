import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { loopbackCertificate } from "../../../packages/server/src/sandbox/credentials.ts";
import { classpathOf } from "../../support/maven.ts";
import { freePort } from "../../support/ports.ts";
import { type Needed, needs, orSkip, pathOf } from "../../support/programs.ts";

/** A Kafka broker of one node, on localhost only. */
export interface TestBroker {
  /** Without TLS or sign-in. */
  readonly address: string;
  /** With TLS, and sign-in by SCRAM-SHA-512 as {@link brokerUser}. */
  readonly secureAddress: string;
  /** PEM of the authority of its certificate. */
  readonly ca: string;
  stop(): Promise<void>;
}

export const brokerUser = { name: "paybell", password: "password-of-a-test" };

const pom = join(import.meta.dirname, "pom.xml");
/** A short life: to compile little, and to collect garbage in one thread, is faster than to run fast. */
const java = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx384m"];

/**
 * Fetches Kafka by Maven, where that was not done before.
 *
 * @returns the options of the tests of it
 */
export function needsBroker(): Needed {
  const needed = needs("jdk", "maven");
  if (needed.skip) return needed;
  return classpathOf(pom) === undefined ? orSkip(["Kafka: Maven cannot fetch it here"]) : needed;
}

/** Starts it; {@link needsBroker} must have succeeded. */
export async function startBroker(): Promise<TestBroker> {
  const runtime = join(dirname(pathOf("jdk")), "java");
  const classpath = classpathOf(pom) ?? "";
  const folder = await mkdtemp(join(tmpdir(), "paybell-kafka-"));
  const [plain, secure, controller] = [await freePort(), await freePort(), await freePort()];
  const { ca } = await loopbackCertificate(folder);
  const properties = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": `1@127.0.0.1:${controller}`,
    listeners: `PLAINTEXT://127.0.0.1:${plain},SASL_SSL://127.0.0.1:${secure},CONTROLLER://127.0.0.1:${controller}`,
    "advertised.listeners": `PLAINTEXT://127.0.0.1:${plain},SASL_SSL://127.0.0.1:${secure}`,
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "log.dirs": join(folder, "log"),
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config":
      "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": join(folder, "receiver.pem"),
  };
  const file = join(folder, "server.properties");
  await writeFile(
    file,
    Object.entries(properties)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(""),
  );
  const { name, password } = brokerUser;
  const scram = `SCRAM-SHA-512=[name=${name},password=${password}]`;
  const format = ["format", "-t", "AAAAAAAAQACAAAAAAAAAAQ", "-c", file, "--add-scram", scram];
  const formatted = spawnSync(runtime, [...java, "-cp", classpath, "kafka.tools.StorageTool", ...format], {
    encoding: "utf8",
  });
  if (formatted.status !== 0) throw new Error(`Kafka's folder could not be made: ${formatted.stderr}`);
  const child = spawn(runtime, [...java, "-cp", classpath, "kafka.Kafka", file], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  await started(child);
  return {
    address: `127.0.0.1:${plain}`,
    secureAddress: `127.0.0.1:${secure}`,
    ca,
    async stop() {
      const ended = new Promise((resolve) => child.once("close", resolve));
      child.kill("SIGKILL");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function started(child: ChildProcess): Promise<void> {
  const said: string[] = [];
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface(stream).on("line", (line) => {
        if (said.length < 1_000) said.push(line);
        if (line.includes("Kafka Server started")) resolve();
      });
    }
    child.once("close", (code) => reject(new Error(`Kafka ended with ${code}:\n${said.slice(-40).join("\n")}`)));
  });
}
