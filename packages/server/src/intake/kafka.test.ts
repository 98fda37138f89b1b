import { EventEmitter } from "node:events";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLog } from "../telemetry/log.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { KafkaIntake } from "./kafka.ts";

/** The client as far as it is used: a real one shows these failures only while a broker is restarted. */
const client = vi.hoisted(() => ({
  consume: () => Promise.reject(new Error("no stream")) as Promise<unknown>,
  sent: [] as DeadLetter[],
}));
interface DeadLetter {
  readonly topic: string;
  readonly key?: Buffer;
  readonly value?: Buffer;
  readonly headers: ReadonlyMap<Buffer, Buffer>;
}
vi.mock("@platformatic/kafka", () => ({
  Consumer: class extends EventEmitter {
    consume = () => client.consume.call(this);
    startLagMonitoring = () => undefined;
    close = async () => undefined;
  },
  Producer: class {
    send = async ({ messages }: { messages: readonly DeadLetter[] }) => void client.sent.push(...messages);
    close = async () => undefined;
  },
}));

let logged: string[];
let intake: KafkaIntake;
beforeEach(() => {
  logged = [];
  const metrics = createMetrics();
  metrics.close();
  client.sent.length = 0;
  intake = new KafkaIntake({
    ...{
      connection: { bootstrapBrokers: [] },
      topic: "completions",
      deadLetterTopic: "dead",
      group: "paybell",
      metrics,
    },
    log: createLog("warn", { write: (line) => void logged.push(line) }),
    directory: { find: async () => undefined },
    isRegisteredDevice: async () => false,
    reports: { report: async () => [], recordRefused: async () => undefined },
  });
});
afterEach(() => intake.stop());

/** Resolves with the stream's consumer, once it is read. */
function streaming(stream: Readable): Promise<EventEmitter> {
  const { promise, resolve } = Promise.withResolvers<EventEmitter>();
  client.consume = async function consume(this: unknown) {
    resolve(this as EventEmitter);
    return stream;
  };
  intake.start();
  return promise;
}
const isTriedAgain = (why: string) =>
  expect.poll(() => logged.join("")).toMatch(new RegExp(`${why}.*the topic of completions cannot be read`));

test("a commit that is never answered, because the stream ended, does not hold up the next try", async () => {
  const committing = Promise.withResolvers<void>();
  const stream = new Readable({ objectMode: true, read: () => undefined });
  await streaming(stream);
  stream.push({
    ...{ topic: "completions", partition: 0, offset: 0n, value: Buffer.from("{}") },
    commit() {
      committing.resolve();
      return new Promise(() => undefined);
    },
  });
  await committing.promise;
  stream.destroy(new Error("the broker is away"));
  await isTriedAgain("the broker is away");
});

test("a consumer that cannot join its group again is replaced, and does not end the process", async () => {
  const stream = new Readable({ objectMode: true, read: () => undefined });
  const consumer = await streaming(stream);
  await expect.poll(() => stream.listenerCount("readable")).toBe(1);
  consumer.emit("error", new Error("joinGroup failed 4 times."));
  await isTriedAgain("joinGroup failed 4 times");
  expect(stream.destroyed).toBe(true);
});

test("a refused message is a dead letter, without its value and a key that may be a card, before it is committed", async () => {
  const stream = new Readable({ objectMode: true, read: () => undefined });
  await streaming(stream);
  const committed = Promise.withResolvers<number>();
  for (const [offset, key] of ["4111111111111111", "order 1"].entries()) {
    stream.push({
      ...{ topic: "completions", partition: 3, offset: BigInt(offset), key: Buffer.from(key), value: Buffer.from("{") },
      commit: async () => committed.resolve(client.sent.length),
    });
  }
  expect(await committed.promise).toBeGreaterThan(0);
  await expect.poll(() => client.sent.length).toBe(2);
  expect(client.sent.map(({ topic, key, value }) => [topic, key?.toString(), value])).toEqual([
    ["dead", undefined, undefined],
    ["dead", "order 1", undefined],
  ]);
  const headers = [...(client.sent[1]?.headers ?? [])].map((pair) => pair.map(String));
  expect(Object.fromEntries(headers)).toMatchObject({
    ...{ result: "refused", code: "invalid_json", source: "completions/3/1" },
  });
});
