import { Queue, Worker } from "bullmq";
import { openCallback, type SaleJob, saleJobs } from "../callback.ts";
import { type ContenderMethods, contenderMethods } from "../contender.ts";
import { answer } from "../processes/channel.ts";

/** BullMQ on Redis: jobs added in bulk, done when the worker has moved them to "completed", and removed there. */
function bullmqMethods(process: NodeJS.Process): ContenderMethods {
  return contenderMethods(process, async ({ target, redisSocket, setting }, progress) => {
    const concurrency = setting["concurrency"] ?? 1;
    const connection = { path: redisSocket, maxRetriesPerRequest: null };
    const callback = openCallback(target, concurrency);
    const queue = new Queue<SaleJob>("ipn", { connection });
    const options = { connection, concurrency, removeOnComplete: { count: 0 } };
    const worker = new Worker<SaleJob>("ipn", ({ data }) => callback.post(data.id, data.ipn), options);
    worker.on("completed", () => progress.add());
    // A failed job would leave the round waiting for ever: the bench ends, saying so.
    worker.on("failed", (_job, error) => process.emit("uncaughtException", error));
    await worker.waitUntilReady();
    return {
      batch: setting["batch"] ?? 1,
      async handOver(count) {
        await queue.addBulk(saleJobs(count).map((data) => ({ name: "ipn", data, opts: { removeOnComplete: true } })));
      },
      async close() {
        await worker.close();
        await callback.close();
        await queue.obliterate({ force: true });
        await queue.close();
      },
    };
  });
}

if (import.meta.main) answer(process, bullmqMethods(process));
