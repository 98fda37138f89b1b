import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { Pool } from "pg";
import { jsonArray, uuidArray } from "../../packages/server/src/store/database/columns.ts";
import { GroupCommit } from "../../packages/server/src/store/database/group-commit.ts";
import { saleIpn } from "../callback.ts";
import { type ContenderMethods, contenderMethods, producers } from "../contender.ts";
import { answer } from "./channel.ts";
import type { PlainJob, PlainSenderData } from "./plain-sender.ts";

const schema = `
  CREATE TABLE notifications (
    id uuid PRIMARY KEY, content json NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
  CREATE TABLE pending (id uuid PRIMARY KEY, due_at timestamptz NOT NULL DEFAULT now());
  CREATE TABLE attempts (
    id uuid, attempt_no integer, http_status integer, started_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, attempt_no))`;

const insert = {
  name: "insert",
  text: `
    WITH rows AS (SELECT * FROM unnest($1::uuid[], $2::json[]) AS row(id, content)),
    kept AS (INSERT INTO notifications (id, content) SELECT id, content FROM rows)
    INSERT INTO pending (id) SELECT id FROM rows`,
};

/** As the engine's. */
const rowsMax = 128;
const rowsMin = 16;

/**
 * The least that a durable notifier does: the content and its delivery in one commit, a message to a thread that signs,
 * seals and POSTs, and a commit of the outcome there. It has no ledger, checks nothing, and knows neither order, rates,
 * circuits, owners nor retries.
 */
function plainMethods(process: NodeJS.Process): ContenderMethods {
  return contenderMethods(process, async ({ target, databaseUrl, setting }, progress) => {
    const pool = new Pool({ connectionString: databaseUrl, max: 2 });
    await pool.query(schema);
    const commits = new GroupCommit<PlainJob, true>({
      name: "plain",
      key: ({ id }) => id,
      bytes: ({ content }) => content.length,
      giveUpAfterMs: Number.POSITIVE_INFINITY,
      rowsMax,
      rowsMin,
      commit: async (jobs) => {
        const values = [uuidArray(jobs.map(({ id }) => id)), jsonArray(jobs.map(({ content }) => content))];
        await pool.query({ ...insert, values });
        return new Map(jobs.map(({ id }) => [id, true] as const));
      },
    });
    const workerData: PlainSenderData = { target, databaseUrl, connections: setting["connections"] ?? producers };
    const sender = new Worker(new URL("./plain-sender.ts", import.meta.url), { workerData });
    sender.on("error", (error) => process.emit("uncaughtException", error as Error));
    sender.on("message", (recorded: number) => progress.add(recorded));
    await once(sender, "online");
    let outbox: PlainJob[] = [];
    return {
      batch: 1,
      async handOver() {
        const id = randomUUID();
        const job = { id, content: JSON.stringify(saleIpn(id)) };
        await commits.add(job);
        if (outbox.push(job) > 1) return;
        setImmediate(() => {
          sender.postMessage(outbox);
          outbox = [];
        });
      },
      async close() {
        await sender.terminate();
        await pool.end();
      },
    };
  });
}

if (import.meta.main) answer(process, plainMethods(process));
