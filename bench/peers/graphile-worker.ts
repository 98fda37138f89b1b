import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { openCallback, type SaleJob, saleJobs } from "../callback.ts";
import { type ContenderMethods, contenderMethods } from "../contender.ts";
import { answer } from "../processes/channel.ts";

const silent = new Logger(() => () => undefined);
const poolSize = 10;
const retryPollMs = 2;

/** graphile-worker on PostgreSQL: addJobs, a local queue, completions in batches; done when no job row is left. */
function graphileWorkerMethods(process: NodeJS.Process): ContenderMethods {
  return contenderMethods(process, async ({ target, databaseUrl, setting }, progress) => {
    const concurrency = setting["concurrency"] ?? 1;
    const callback = openCallback(target, concurrency);
    const shared = { connectionString: databaseUrl, logger: silent, maxPoolSize: poolSize };
    const utils = await makeWorkerUtils(shared);
    await utils.migrate();
    const runner = await run({
      ...shared,
      noHandleSignals: true,
      taskList: {
        ipn: async (payload) => {
          const { id, ipn } = payload as SaleJob;
          await callback.post(id, ipn);
        },
      },
      preset: {
        worker: {
          concurrentJobs: concurrency,
          localQueue: { size: setting["localQueue"] ?? concurrency },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
          pollInterval: 50,
        },
      },
    });
    runner.events.on("job:complete", ({ error }) => {
      if (error) process.emit("uncaughtException", error as Error);
      progress.add();
    });
    const leftJobs = () =>
      utils.withPgClient(
        async (client) => (await client.query("SELECT FROM graphile_worker._private_jobs LIMIT 1")).rowCount,
      );
    return {
      batch: setting["batch"] ?? 1,
      async handOver(count) {
        await utils.addJobs(saleJobs(count).map((payload) => ({ identifier: "ipn", payload })));
      },
      async recorded() {
        while ((await leftJobs()) !== 0) await new Promise((resolve) => setTimeout(resolve, retryPollMs));
      },
      async close() {
        await runner.stop();
        await utils.release();
        await callback.close();
      },
    };
  });
}

if (import.meta.main) answer(process, graphileWorkerMethods(process));
