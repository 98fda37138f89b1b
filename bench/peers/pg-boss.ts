import { PgBoss } from "pg-boss";
import { openCallback, type SaleJob, saleJobs } from "../callback.ts";
import { type ContenderMethods, contenderMethods, RoundProgress } from "../contender.ts";
import { answer } from "../processes/channel.ts";

const queueName = "ipn";
const poolSize = 10;

/**
 * pg-boss on PostgreSQL: insert, fetch and complete in batches. Its `work` waits half a second or more whenever a fetch
 * comes back short; loops of our own over fetch and complete do not, so that is what it is measured with.
 */
function pgBossMethods(process: NodeJS.Process): ContenderMethods {
  return contenderMethods(process, async ({ target, databaseUrl, setting }, progress) => {
    const added = new RoundProgress();
    let closed = false;
    const batch = setting["batch"] ?? 1;
    const loops = setting["loops"] ?? 1;
    const fetchSize = setting["fetch"] ?? batch;
    const callback = openCallback(target, loops * fetchSize);
    const db = new PgBoss({ connectionString: databaseUrl, max: poolSize });
    db.on("error", (error: Error) => process.emit("uncaughtException", error));
    await db.start();
    await db.createQueue(queueName);

    async function fetchAndComplete(): Promise<void> {
      while (!closed) {
        const jobs = await db.fetch<SaleJob>(queueName, { batchSize: fetchSize });
        if (jobs.length === 0) {
          if (added.done === progress.done) await added.more();
          else await new Promise(setImmediate);
          continue;
        }
        await Promise.all(jobs.map(({ data }) => callback.post(data.id, data.ipn)));
        const ids = jobs.map(({ id }) => id);
        await db.complete(queueName, ids);
        progress.add(jobs.length);
      }
    }

    for (let loop = 0; loop < loops; loop += 1) {
      fetchAndComplete().catch((error: unknown) => process.emit("uncaughtException", error as Error));
    }
    return {
      batch,
      async handOver(count) {
        await db.insert(
          queueName,
          saleJobs(count).map((data) => ({ data })),
        );
        added.add(count);
      },
      // The loops are not awaited: a loop's last call was seen never to answer, and the process ends after this.
      async close() {
        closed = true;
        added.add(0);
      },
    };
  });
}

if (import.meta.main) answer(process, pgBossMethods(process));
