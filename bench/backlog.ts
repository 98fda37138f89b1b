import { Client } from "pg";
import { MasterKey } from "../packages/server/src/partners/master-key.ts";
import type { Cleanup } from "./command.ts";
import { copyRows } from "./copied-rows.ts";
import type { BenchEnvironment } from "./environment.ts";
import { type BenchService, openService } from "./service-rows.ts";
import { type Spread, spread } from "./statistics.ts";

export interface BacklogPlan {
  /** Pending in the one database; the other has what one round drains. */
  readonly pending: number;
  readonly rounds: number;
  readonly rowsPerRound: number;
}

/** The cost of one statement with few pending rows and with many, in milliseconds per call. */
export interface GrownStatement {
  readonly query: string;
  readonly fewMs: number;
  readonly manyMs: number;
}

export interface BacklogResult extends BacklogPlan {
  /** Accepted a second. */
  readonly fewPerS: Spread;
  readonly manyPerS: Spread;
  /** Round by round. */
  readonly manyOfFew: Spread;
  /** Peak memory with many pending minus peak memory with few, in bytes. */
  readonly memoryGrowth: number;
  /** Each statement that took a visible share of the drains. */
  readonly statements: readonly GrownStatement[];
  /** The statements among them that take half as long again with many pending. */
  readonly grown: readonly GrownStatement[];
}

/** Below this share of the whole time, and below this difference, a statement's mean says nothing. */
const visibleShare = 0.01;
const visibleMs = 0.2;
const grownBy = 1.5;

/** A service that sends when it is asked to, and its database. */
interface Drained {
  readonly service: BenchService;
  /** Makes so many more due, of all partners alike. */
  add(rows: number): Promise<void>;
  /** Accepted a second, round by round. */
  readonly perS: number[];
}

/** Two databases, one with hardly anything pending and one with a great deal, drained in turns. */
export async function measureBacklog(
  around: BenchEnvironment,
  cleanup: Cleanup,
  plan: BacklogPlan,
  note: (line: string) => void,
): Promise<BacklogResult> {
  const server = new Client({ connectionString: around.postgres.superuserConnectionString });
  await server.connect();
  cleanup.add(() => server.end());
  await server.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
  const few = await openDrained("backlog-few", around, cleanup, server);
  const many = await openDrained("backlog-many", around, cleanup, server);
  note(`backlog: writing ${plan.pending} pending notifications`);
  await many.add(plan.pending);
  // Otherwise its last rows would be drained with fewer and fewer POSTs in flight.
  await few.add(plan.rowsPerRound / 4);
  for (let round = 0; round <= plan.rounds; round += 1) {
    if (round === 1) await server.query("SELECT pg_stat_statements_reset()");
    for (const { service, add, perS } of [few, many]) {
      await add(plan.rowsPerRound);
      const drainedPerS = await service.process.ask("drain", plan.rowsPerRound);
      if (round > 0) perS.push(drainedPerS);
    }
    note(round === 0 ? "backlog: warmed up" : `backlog: round ${round} of ${plan.rounds}`);
  }
  const statements = await compareStatements(server);
  const heldBy = async ({ service }: Drained) => (await service.process.ask("standing", undefined)).memory.rss;
  return {
    ...plan,
    fewPerS: spread(few.perS),
    manyPerS: spread(many.perS),
    manyOfFew: spread(many.perS.map((perS, round) => perS / (few.perS[round] ?? Number.NaN))),
    memoryGrowth: (await heldBy(many)) - (await heldBy(few)),
    statements,
    grown: statements.filter(({ fewMs, manyMs }) => manyMs > fewMs * grownBy && manyMs - fewMs > visibleMs),
  };
}

/** A service that sends to nobody yet, and one row of each of its partners as a template to copy. */
async function openDrained(name: string, around: BenchEnvironment, cleanup: Cleanup, server: Client): Promise<Drained> {
  const databaseUrl = await around.newDatabase(name);
  await server.query(`ALTER DATABASE ${server.escapeIdentifier(name)} SET pg_stat_statements.track = 'top'`);
  const service = await openService(around, cleanup, name, { databaseUrl });
  // What it claimed would be copied as claimed.
  await service.process.ask("sending", "paused");
  const to = service.at.partners.map(({ id }) => id);
  await service.process.ask("reportEach", to);
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  cleanup.add(() => client.end());
  await client.query("CREATE TABLE template_pending AS SELECT * FROM pending");
  await client.query(
    `CREATE TABLE template_notifications AS
     SELECT n.* FROM notifications n JOIN template_pending USING (partner_id, id)`,
  );
  const pads = await macPads(client, service.at.masterKey);
  let copies = 0;
  const add = async (rows: number) => {
    const each = Math.ceil(rows / to.length);
    await copyTemplates(client, [copies + 1, copies + each], pads);
    copies += each;
  };
  return { service, add, perS: [] };
}

/** The service's statements, the most expensive first. Those of the bench itself run once a round, on its templates. */
async function compareStatements(server: Client): Promise<readonly GrownStatement[]> {
  // PostgreSQL takes constants out when it prepares a statement, and leaves them in where that was before a reset.
  const { rows } = await server.query<GrownStatement>(
    `WITH costs AS (
       SELECT d.datname, sum(s.total_exec_time) AS total, sum(s.total_exec_time) / sum(s.calls) AS mean,
         regexp_replace(regexp_replace(s.query, $1, '?', 'g'), '\\s+', ' ', 'g') AS query
       FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE s.toplevel GROUP BY 1, 4)
     SELECT left(many.query, 80) AS query, few.mean AS "fewMs", many.mean AS "manyMs"
     FROM costs few JOIN costs many USING (query)
     WHERE few.datname = 'backlog-few' AND many.datname = 'backlog-many' AND query NOT LIKE '%template\\_%'
       AND many.total >= $2 * (SELECT sum(total) FROM costs WHERE datname = 'backlog-many')
     ORDER BY many.total DESC`,
    ["'[^']*'|\\$\\d+|\\m\\d+\\M", visibleShare],
  );
  return rows;
}

const contentKeyName = "notification contents";

/** Of HMAC, for the MACs of the copies. */
async function macPads(client: Client, masterKey: string): Promise<readonly [inner: Buffer, outer: Buffer]> {
  const select = "SELECT sealed FROM sealed_values WHERE name = $1";
  const { rows } = await client.query<{ sealed: Buffer }>(select, [contentKeyName]);
  const key = MasterKey.parse(masterKey).openNamed(rows[0]?.sealed ?? Buffer.alloc(0), contentKeyName);
  const pad = (value: number) => Buffer.from(Array.from({ length: 64 }, (_, at) => (key[at] ?? 0) ^ value));
  return [pad(0x36), pad(0x5c)];
}

/** Each template for each number of the range, with its notification: some 1.5 kB on the disk. */
async function copyTemplates(client: Client, range: readonly number[], pads: readonly Buffer[]): Promise<void> {
  // The day is at the front of an id, so the copies are in the same partition.
  const id = "(left(t.id::text, 24) || lpad(to_hex(i), 12, '0'))::uuid";
  const fields = `concat_ws(E'\\n', 2, coalesce(t.original_id::text, ''), t.partner_id, ${id}, t.command,
    coalesce(t.callback_url, ''), t.content)`;
  // HMAC-SHA256, as ContentMac makes it.
  const inner = `sha256($3::bytea || convert_to(${fields}, 'UTF8'))`;
  const mac = `'\\x02'::bytea || substr(sha256($4::bytea || ${inner}), 1, 16)`;
  const changed = {
    ...{ id, transaction_id: id, chain_id: id, content_mac: mac },
    due_at: "t.due_at + i * interval '1 microsecond'",
  };
  await copyRows(client, "notifications", "template_notifications", changed, [...range, ...pads]);
  await copyRows(client, "pending", "template_pending", changed, range);
}
