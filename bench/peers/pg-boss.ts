import { randomUUID } from "node:crypto";
import type { CardIpn } from "@paybell/contract";
import { PgBoss } from "pg-boss";
import { openCallback } from "../callback.ts";
import { type ContenderMethods, driveRound, RoundProgress } from "../contender.ts";
import { answer } from "../processes/channel.ts";
import { saleIpn } from "../sale.ts";

interface Payload {
  readonly id: string;
  readonly ipn: CardIpn;
}

const queueName = "ipn";
const poolSize = 10;

/**
 * pg-boss on PostgreSQL: insert, fetch and complete in batches. Its `work` waits half a second or more whenever a fetch
 * comes back short; loops of our own over fetch and complete do not, so that is what it is measured with.
 */
export function pgBossMethods(process: NodeJS.Process): ContenderMethods {
  const progress = new RoundProgress();
  const added = new RoundProgress();
  let boss: PgBoss | undefined;
  let batch = 1;
  let closed = false;

  async function fetchAndComplete(db: PgBoss, fetchSize: number, post: (payload: Payload) => Promise<void>) {
    while (!closed) {
      const jobs = await db.fetch<Payload>(queueName, { batchSize: fetchSize });
      if (jobs.length === 0) {
        if (added.done === progress.done) await added.more();
        else await new Promise(setImmediate);
        continue;
      }
      await Promise.all(jobs.map((job) => post(job.data)));
      await db.complete(
        queueName,
        jobs.map((job) => job.id),
      );
      progress.add(jobs.length);
    }
  }

  return {
    async open({ target, databaseUrl, setting }) {
      batch = setting["batch"] ?? 1;
      const loops = setting["loops"] ?? 1;
      const fetchSize = setting["fetch"] ?? batch;
      const callback = openCallback(target, loops * fetchSize);
      const db = new PgBoss({ connectionString: databaseUrl, max: poolSize });
      db.on("error", (error: Error) => process.emit("uncaughtException", error));
      await db.start();
      await db.createQueue(queueName);
      boss = db;
      for (let loop = 0; loop < loops; loop += 1) {
        fetchAndComplete(db, fetchSize, ({ id, ipn }) => callback.post(id, ipn)).catch((error: unknown) => {
          process.emit("uncaughtException", error as Error);
        });
      }
    },
    round: (load) =>
      driveRound(process, load, batch, {
        progress,
        async handOver(count) {
          const jobs = Array.from({ length: count }, () => {
            const id = randomUUID();
            return { data: { id, ipn: saleIpn(id) } };
          });
          await boss?.insert(queueName, jobs);
          added.add(count);
        },
      }),
    // Not awaited: a loop's last call was seen never to answer, and the process ends after this.
    async close() {
      closed = true;
      added.add(0);
    },
  };
}

if (import.meta.main) answer(process, pgBossMethods(process));
