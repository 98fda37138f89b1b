import { parentPort, workerData } from "node:worker_threads";
import type { CardIpn } from "@paybell/contract";
import { Pool } from "pg";
import { integerArray, uuidArray } from "../../packages/server/src/store/database/columns.ts";
import { GroupCommit } from "../../packages/server/src/store/database/group-commit.ts";
import { type CallbackTarget, openCallback } from "../callback.ts";

export interface PlainJob {
  readonly id: string;
  /** JSON of an unsigned IPN. */
  readonly content: string;
}

export interface PlainSenderData {
  readonly target: CallbackTarget;
  readonly databaseUrl: string;
  /** POSTs in flight. */
  readonly connections: number;
}

const record = {
  name: "record",
  text: `
    WITH rows AS (SELECT * FROM unnest($1::uuid[], $2::integer[]) AS row(id, http_status)),
    made AS (INSERT INTO attempts (id, attempt_no, http_status)
      SELECT id, 1, http_status FROM rows)
    DELETE FROM pending USING rows WHERE pending.id = rows.id`,
};
/** As the engine's. */
const lingerMs = 3;

/** The thread of `plain.ts` that POSTs, and records what came of it. */
function run(main: NonNullable<typeof parentPort>, { target, databaseUrl, connections }: PlainSenderData): void {
  const pool = new Pool({ connectionString: databaseUrl, max: 2 });
  const callback = openCallback(target, connections);
  const outcomes = new GroupCommit<string, true>({
    name: "outcomes",
    key: (id) => id,
    bytes: (id) => id.length,
    giveUpAfterMs: Number.POSITIVE_INFINITY,
    lingerMs,
    commit: async (ids) => {
      // Any other answer has ended the thread.
      await pool.query({ ...record, values: [uuidArray(ids), integerArray(ids.map(() => 204))] });
      main.postMessage(ids.length);
      return new Map(ids.map((id) => [id, true] as const));
    },
  });
  let waiting: PlainJob[] = [];
  let inFlight = 0;

  function start(): void {
    let started = 0;
    while (started < waiting.length && inFlight < connections) {
      const job = waiting[started];
      if (job !== undefined) void send(job);
      started += 1;
    }
    waiting = waiting.slice(started);
  }

  async function send({ id, content }: PlainJob): Promise<void> {
    inFlight += 1;
    await callback.post(id, JSON.parse(content) as CardIpn);
    inFlight -= 1;
    start();
    await outcomes.add(id);
  }

  main.on("message", (jobs: readonly PlainJob[]) => {
    waiting = [...waiting, ...jobs];
    start();
  });
}

if (parentPort !== null) run(parentPort, workerData as PlainSenderData);
