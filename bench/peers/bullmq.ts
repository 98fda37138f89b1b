import { randomUUID } from "node:crypto";
import type { CardIpn } from "@paybell/contract";
import { Queue, Worker } from "bullmq";
import { openCallback } from "../callback.ts";
import { type ContenderMethods, driveRound, RoundProgress } from "../contender.ts";
import { answer } from "../processes/channel.ts";
import { saleIpn } from "../sale.ts";

interface Job {
  readonly id: string;
  readonly ipn: CardIpn;
}

/** BullMQ on Redis: jobs added in bulk, done when the worker has moved them to "completed", and removed there. */
export function bullmqMethods(process: NodeJS.Process): ContenderMethods {
  const progress = new RoundProgress();
  const closing: (() => Promise<unknown>)[] = [];
  let queue: Queue<Job> | undefined;
  let batch = 1;
  return {
    async open({ target, redisSocket, setting }) {
      batch = setting["batch"] ?? 1;
      const concurrency = setting["concurrency"] ?? 1;
      const connection = { path: redisSocket, maxRetriesPerRequest: null };
      const callback = openCallback(target, concurrency);
      queue = new Queue<Job>("ipn", { connection });
      const worker = new Worker<Job>("ipn", ({ data }) => callback.post(data.id, data.ipn), {
        connection,
        concurrency,
        removeOnComplete: { count: 0 },
      });
      worker.on("completed", () => progress.add());
      // A failed job would leave the round waiting for ever: the bench ends, saying so.
      worker.on("failed", (_job, error) => process.emit("uncaughtException", error));
      closing.push(
        () => worker.close(),
        () => callback.close(),
        () => queue?.obliterate({ force: true }) ?? Promise.resolve(),
        () => queue?.close() ?? Promise.resolve(),
      );
      await worker.waitUntilReady();
    },
    round: (load) =>
      driveRound(process, load, batch, {
        progress,
        async handOver(count) {
          const jobs = Array.from({ length: count }, () => {
            const id = randomUUID();
            return { name: "ipn", data: { id, ipn: saleIpn(id) }, opts: { removeOnComplete: true } };
          });
          await queue?.addBulk(jobs);
        },
      }),
    async close() {
      for (const close of closing.splice(0)) await close();
    },
  };
}

if (import.meta.main) answer(process, bullmqMethods(process));
