import { clientOptions, type KafkaConnection, type KafkaTopics, loadKafka } from "./kafka.ts";

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
