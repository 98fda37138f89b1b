import { setTimeout as pause } from "node:timers/promises";
import type * as KafkaClient from "@platformatic/kafka";
import { holdsCardNumber } from "../guards/card-number.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { type IntakeParts, type ItemResult, jsonItem, reportUntilDurable } from "./report-items.ts";

/** The addresses of the brokers, and the credentials for them. */
export type KafkaConnection = Pick<KafkaClient.BaseOptions, "bootstrapBrokers" | "tls" | "tlsServerName" | "sasl">;

interface KafkaTopics {
  /** Each message is a completion in JSON. */
  readonly topic: string;
  /** The topic of refused messages and conflicts, besides their events; null: none. */
  readonly deadLetterTopic: string | null;
}

interface KafkaIntakeParts extends IntakeParts, KafkaTopics {
  readonly connection: KafkaConnection;
  readonly group: string;
  readonly metrics: Pick<Metrics, "intakeKafkaConnected" | "intakeKafkaLag">;
  readonly log: Log;
}

type Message = KafkaClient.Message;
type Stream = KafkaClient.MessagesStream<Buffer, Buffer, Buffer, Buffer>;

/** As many as an HTTP report may have: they are made durable together. */
const messagesPerReport = 1_000;
const retryMs = 2_000;
const lagEveryMs = 10_000;
/** A killed instance's partitions are read by others after so long. */
const sessionTimeoutMs = 30_000;
/** The time for which a broker may hold an empty fetch: a stop waits for it. */
const fetchWaitMs = 500;

/**
 * Consumes completions from a topic, as a member of a consumer group. An offset is committed once everything before it
 * is durable, refused, or a duplicate: a message may be read again, and takes effect once, by its externalId.
 */
export class KafkaIntake {
  readonly #parts: KafkaIntakeParts;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(parts: KafkaIntakeParts) {
    this.#parts = parts;
  }

  start(): void {
    const { metrics, topic } = this.#parts;
    metrics.intakeKafkaConnected.set({ topic }, 0);
    this.#running = this.#run();
  }

  /** Leaves the group once the messages in hand are durable and committed. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { log, metrics, topic } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#consume().catch((error: unknown) => {
        if (!signal.aborted)
          log.warn({ err: error, topic }, "the topic of completions cannot be read; it is tried again");
      });
      metrics.intakeKafkaConnected.set({ topic }, 0);
      // Others consume its partitions now, and know how far behind they are.
      metrics.intakeKafkaLag.remove({ topic });
      await pause(retryMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #consume(): Promise<void> {
    const { connection, group: groupId, topic, metrics, deadLetterTopic } = this.#parts;
    const kafka = await loadKafka();
    const consumer = new kafka.Consumer({ ...clientOptions(connection), groupId, sessionTimeout: sessionTimeoutMs });
    const producer = deadLetterTopic === null ? undefined : new kafka.Producer(clientOptions(connection));
    consumer.on("consumer:lag", (lag) => metrics.intakeKafkaLag.set({ topic }, sumOf(lag.get(topic) ?? [])));
    let stream: Stream | undefined;
    // It could not join its group again, and does not try any more. Without a listener that ends the process.
    consumer.on("error", (error) => stream?.destroy(error));
    try {
      stream = await consumer.consume({
        topics: [topic],
        mode: "committed",
        fallbackMode: "earliest",
        autocommit: false,
        maxWaitTime: fetchWaitMs,
      });
      metrics.intakeKafkaConnected.set({ topic }, 1);
      consumer.startLagMonitoring({ topics: [topic] }, lagEveryMs);
      const batches = new Batches(stream, this.#stopping.signal);
      for (let batch = await batches.next(); ; batch = await batches.next()) await this.#take(batch, batches, producer);
    } finally {
      stream?.destroy();
      await Promise.all([consumer.close(true), producer?.close(true)]);
    }
  }

  async #take(batch: readonly Message[], batches: Batches, producer: KafkaClient.Producer | undefined): Promise<void> {
    const { log, topic } = this.#parts;
    const onTrouble = (error: unknown) => log.warn({ err: error, topic }, "messages wait to be durable");
    const { signal } = this.#stopping;
    // A message without a value is refused like any other that cannot be read.
    const items = batch.map(({ value }) => jsonItem(value ?? Buffer.alloc(0), "The message"));
    const results = await reportUntilDurable(items, this.#parts, { signal, onTrouble });
    if (producer !== undefined) await this.#sendToDeadLetters(batch, results, producer);
    const last = new Map(batch.map((message) => [message.partition, message]));
    await batches.unlessEnded(Promise.all([...last.values()].map((message) => message.commit())));
  }

  async #sendToDeadLetters(
    batch: readonly Message[],
    results: readonly ItemResult[],
    producer: KafkaClient.Producer,
  ): Promise<void> {
    const { deadLetterTopic } = this.#parts;
    const messages = batch.flatMap((message, index) => {
      const { result, problem } = results[index] ?? {};
      if (deadLetterTopic === null || result === undefined || problem === undefined) return [];
      const { key, topic, partition, offset } = message;
      const headers = {
        result,
        code: problem.code,
        detail: problem.message,
        source: `${topic}/${partition}/${offset}`,
      };
      // Without the value: it may hold card data, and `source` says where it is.
      const isKeyKept = key !== undefined && key !== null && !holdsCardNumber(key.toString());
      return [{ topic: deadLetterTopic, ...(isKeyKept && { key }), headers: asBuffers(headers) }];
    });
    if (messages.length > 0) await producer.send({ messages, acks: -1 });
  }
}

/** Takes what has come, up to a batch, and waits only while there is nothing. */
class Batches {
  readonly #stream: Stream;
  readonly #signal: AbortSignal;
  #wake: () => void = () => undefined;
  #failure: unknown;

  constructor(stream: Stream, signal: AbortSignal) {
    this.#stream = stream;
    this.#signal = signal;
    // Without a listener for `readable` at all times the stream stops fetching.
    stream.on("readable", () => this.#wake());
    stream.on("error", (error) => this.#end(error));
    stream.on("close", () => this.#end(new Error("The stream of messages ended.")));
    signal.addEventListener("abort", () => this.#end(signal.reason), { once: true });
  }

  /** Rejects once the stream has ended or the signal is aborted. */
  async next(): Promise<readonly Message[]> {
    for (;;) {
      this.#signal.throwIfAborted();
      if (this.#failure !== undefined) throw this.#failure;
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      const batch = this.#read();
      if (batch.length > 0) return batch;
      await woken;
    }
  }

  /** Rejects also when the stream ends: the client leaves a commit that waits for its group without an answer then. */
  async unlessEnded(commits: Promise<unknown>): Promise<void> {
    const { promise, reject } = Promise.withResolvers<never>();
    const onClose = () => reject(this.#failure);
    if (this.#stream.closed) onClose();
    this.#stream.once("close", onClose);
    try {
      await Promise.race([commits, promise]);
    } finally {
      this.#stream.off("close", onClose);
    }
  }

  #read(): readonly Message[] {
    const batch: Message[] = [];
    while (batch.length < messagesPerReport) {
      const message = this.#stream.read() as Message | null;
      if (message === null) break;
      batch.push(message);
    }
    return batch;
  }

  #end(failure: unknown): void {
    this.#failure ??= failure;
    this.#wake();
  }
}

/** Loaded only where it is configured. */
function loadKafka(): Promise<typeof KafkaClient> {
  return import("@platformatic/kafka");
}

function clientOptions(connection: KafkaConnection) {
  return { ...connection, clientId: "paybell", autocreateTopics: false, connectTimeout: 5_000, requestTimeout: 30_000 };
}

function asBuffers(headers: Readonly<Record<string, string>>): Map<Buffer, Buffer> {
  return new Map(Object.entries(headers).map(([name, value]) => [Buffer.from(name), Buffer.from(value)]));
}

/** Partitions that this member does not read have -1. */
function sumOf(lags: readonly bigint[]): number {
  return Number(lags.reduce((sum, lag) => (lag > 0n ? sum + lag : sum), 0n));
}

/** Whether the brokers are reached and have the topics. @returns words for people @throws the reason why not */
export async function inspectKafka(connection: KafkaConnection, topics: KafkaTopics): Promise<string> {
  const { topic, deadLetterTopic } = topics;
  const kafka = await loadKafka();
  const admin = new kafka.Admin({ ...clientOptions(connection), retries: 0 });
  try {
    const wanted = [topic, ...(deadLetterTopic === null ? [] : [deadLetterTopic])];
    const metadata = await admin.metadata({ topics: wanted, retries: 0 });
    const missing = wanted.filter((name) => !metadata.topics.has(name));
    if (missing.length > 0) throw new Error(`the brokers have no topic ${missing.join(", ")}`);
    return `${topic} has ${metadata.topics.get(topic)?.partitionsCount} partitions on ${metadata.brokers.size} brokers`;
  } finally {
    await admin.close();
  }
}
