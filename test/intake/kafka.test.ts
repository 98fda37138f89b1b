import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Admin, Consumer, type Message, Producer } from "@platformatic/kafka";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readConfig } from "../../packages/server/src/config/config.ts";
import { check } from "../../packages/server/src/programs/check.ts";
import { reportedSale } from "../support/commands.ts";
import { createDatabase, queryHomes, type TestDatabase } from "../support/database.ts";
import { partnerHost, spawnInstance } from "../support/instance.ts";
import { eventually, startTestService } from "../support/service.ts";
import { brokerUser, needsBroker, startBroker, type TestBroker } from "./broker/broker.ts";
import { countTransactions } from "./transactions.ts";

const messages = 2_000;
const needed = needsBroker();

describe("completions from a Kafka topic", needed, () => {
  let broker: TestBroker;
  let database: TestDatabase;
  let admin: Admin;
  let producer: Producer;
  let topic: string;

  beforeAll(async () => {
    broker = await startBroker();
    const client = { clientId: "test", bootstrapBrokers: [broker.address] };
    admin = new Admin(client);
    producer = new Producer(client);
  });
  afterAll(async () => {
    await Promise.all([admin?.close(), producer?.close()]);
    await broker?.stop();
  });
  beforeEach(async () => {
    topic = `completions-${randomBytes(4).toString("hex")}`;
    [database] = await Promise.all([
      createDatabase(),
      admin.createTopics({ topics: [topic, `${topic}-refused`], partitions: 3, replicas: 1 }),
    ]);
  });
  afterEach(() => database.drop());

  const settings = () => ({
    PAYBELL_KAFKA_BROKERS: broker.address,
    PAYBELL_KAFKA_TLS: "off",
    PAYBELL_KAFKA_TOPIC: topic,
    PAYBELL_KAFKA_GROUP: `group-of-${topic}`,
    PAYBELL_KAFKA_DEAD_LETTER_TOPIC: `${topic}-refused`,
  });

  async function send(values: readonly unknown[]): Promise<void> {
    const texts = values.map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
    await producer.send({ messages: texts.map((text) => ({ topic, value: Buffer.from(text) })), acks: -1 });
  }

  /** Everything that a topic has, once it has that many messages. */
  async function messagesOf(name: string, count: number): Promise<Message[]> {
    const consumer = new Consumer({ clientId: "test", bootstrapBrokers: [broker.address], groupId: `read-${name}` });
    const stream = await consumer.consume({ topics: [name], mode: "earliest", autocommit: false, maxWaitTime: 100 });
    const found: Message[] = [];
    for await (const message of stream) if (found.push(message as Message) === count) break;
    await consumer.close(true);
    return found;
  }

  test("are notified; what is refused is an event, and goes to the topic of dead letters", async () => {
    const service = await startTestService({ database, env: settings() });
    const partner = await service.register();
    const good = reportedSale(partner.id, { externalId: "good" });
    await send([good, { ...good, externalId: "bad", amount: "-1" }, "{nonsense", { ...good, amount: "150001" }]);
    await partner.server.next(1);
    const letters = await messagesOf(`${topic}-refused`, 3);
    const shown = letters.map(({ value, headers }) => {
      const named = Object.fromEntries([...headers].map(([name, text]) => [String(name), String(text)]));
      return [named["code"], named["source"], value?.length ?? 0];
    });
    const source = expect.stringMatching(new RegExp(`^${topic}/\\d+/\\d+$`));
    expect(shown.sort()).toEqual(
      ["invalid_amount", "invalid_json", "report_conflict"].map((code) => [code, source, 0]),
    );
    const events = await queryHomes<{ kind: string }>(database, "SELECT kind FROM events");
    expect(events.map(({ kind }) => kind).sort()).toEqual(["report_conflict", "report_refused", "report_refused"]);
    const { text } = await service.operator("GET", "/metrics");
    expect(text).toContain(`paybell_intake_kafka_connected{topic="${topic}"} 1`);
    expect(text).toContain('paybell_reports_total{command="unknown",result="refused"} 1');
    await service.stop();
    expect(await countTransactions(database)).toEqual({ rows: 1, keys: 1, told: 1 });
  });

  test("are read again while the topic of dead letters cannot be written", async () => {
    const later = `${topic}-later`;
    const service = await startTestService({
      database,
      env: { ...settings(), PAYBELL_KAFKA_DEAD_LETTER_TOPIC: later },
    });
    await send(["{nonsense"]);
    await expect.poll(() => service.logged()).toContain("the topic of completions cannot be read");
    await admin.createTopics({ topics: [later], partitions: 1, replicas: 1 });
    expect(await messagesOf(later, 1)).toHaveLength(1);
    await service.stop();
  });

  test("take effect once each, when an instance is killed in the middle and another goes on", async () => {
    const { host, callsLoopback } = partnerHost();
    const masterKey = randomBytes(32);
    const start = () => spawnInstance({ databaseUrl: database.url, masterKey, callsLoopback, env: settings() });
    const first = await start();
    const partner = await first.register({}, { host });
    await first.operator("POST", `/operator/v1/partners/${partner.id}/pause`);
    const items = Array.from({ length: messages }, (_, at) => reportedSale(partner.id, { externalId: `s-${at}` }));
    for (let at = 0; at < messages; at += 500) await send(items.slice(at, at + 500));
    await eventually("the first messages to be durable", async () =>
      (await countTransactions(database)).rows > 0 ? true : undefined,
    );
    first.signal("SIGKILL");
    await first.exited;
    const second = await start();
    await eventually("every message to be durable", async () =>
      (await countTransactions(database)).rows === messages ? true : undefined,
    );
    second.signal("SIGTERM");
    expect(await second.exited).toBe(0);
    // Its group has committed what is durable: a third instance reads none of it again.
    const group = new Consumer({ clientId: "test", bootstrapBrokers: [broker.address], groupId: `group-of-${topic}` });
    const offsets = await group.listCommittedOffsets({ topics: [{ topic, partitions: [0, 1, 2] }] });
    await group.close();
    expect(Number((offsets.get(topic) ?? []).reduce((sum, offset) => sum + offset, 0n))).toBe(messages);
    expect(await countTransactions(database)).toEqual({ rows: messages, keys: messages, told: messages });
    await partner.server.close();
  });

  test("come by TLS and SASL, and `paybell check` knows whether they can", async () => {
    const folder = await mkdtemp(join(tmpdir(), "paybell-kafka-test-"));
    await writeFile(join(folder, "ca.pem"), broker.ca);
    await writeFile(join(folder, "password"), `${brokerUser.password}\n`);
    const secure = {
      ...settings(),
      PAYBELL_KAFKA_BROKERS: broker.secureAddress,
      PAYBELL_KAFKA_TLS: "on",
      PAYBELL_KAFKA_CA_FILE: join(folder, "ca.pem"),
      PAYBELL_KAFKA_SASL: "SCRAM-SHA-512",
      PAYBELL_KAFKA_USER: brokerUser.name,
      PAYBELL_KAFKA_PASSWORD_FILE: join(folder, "password"),
    };
    const service = await startTestService({ database, env: secure });
    const partner = await service.register();
    await send([reportedSale(partner.id, { externalId: "good" })]);
    await partner.server.next(1);
    await service.stop();
    expect(service.logged()).not.toContain(brokerUser.password);

    const findingOf = async (env: NodeJS.ProcessEnv) => {
      const findings = await check(readConfig({ DATABASE_URL: database.serviceUrl, ...env }));
      expect(JSON.stringify(findings)).not.toContain(brokerUser.password);
      return findings.find(({ what }) => what === "Kafka");
    };
    expect(await findingOf(secure)).toMatchObject({ level: "ok", detail: `${topic} has 3 partitions on 1 brokers` });
    expect(await findingOf({ ...secure, PAYBELL_KAFKA_TOPIC: "nowhere" })).toMatchObject({ level: "error" });
    await writeFile(join(folder, "password"), "another password");
    expect(await findingOf(secure)).toMatchObject({ level: "error" });
    await rm(folder, { recursive: true });
  });
});
