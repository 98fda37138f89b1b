import { monitorEventLoopDelay } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { clearingSchema } from "../packages/server/src/acquirer/iso8583/profile/clearing.ts";
import { Clearing } from "../packages/server/src/clearing/clearing.ts";
import { createLog } from "../packages/server/src/log.ts";
import { PostgresClearing } from "../packages/server/src/store/clearing/clearing.ts";
import { openDatabase } from "../packages/server/src/store/database/database.ts";
import { prepareSchema } from "../packages/server/src/store/schema/migrate.ts";
import { Cleanup, startEnvironment } from "./environment.ts";

/** Matches a clearing file of a day with a ledger that has as many transactions. The last line is JSON. */
const { values } = parseArgs({ options: { lines: { type: "string", default: "1000000" } } });
const lines = Number(values.lines);
const partners = 100;
const linesPerPiece = 500;
const dayMs = 86_400_000;
const dayStartMs = Math.floor(Date.now() / dayMs) * dayMs - dayMs;
const day = new Date(dayStartMs).toISOString().slice(0, 10).replaceAll("-", "");

const insertPartners = `
  INSERT INTO partners (id, state, settings)
  SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'active', '{}' FROM generate_series(1, $1) n`;
const insertTransactions = `
  INSERT INTO transactions (partner_id, id, origin, command, state, req_id, chain_id, tid, amount_minor, currency,
    acquirer, facts, created_at, completed_at)
  SELECT i.partner_id, i.id, 'command', 'SALE', 'SUCCESS', i.id::text, i.id, i.tid, 1000 + n % 1000, 'VND', 'bank',
    json_build_object('kind', 'card', 'command', 'SALE', 'fields', json_build_object('amount', (1000 + n % 1000)::text,
      'currency', 'VND', 'refId', lpad(n::text, 12, '0'), 'traceNo', lpad((n % 999999 + 1)::text, 6, '0'),
      'tid', i.tid, 'mid', 'M00000000000001', 'status', 'SUCCESS', 'isoResponseCode', '00', 'approveCode', '123456',
      'cardNumber', '411111******1111', 'cardScheme', 'VISA', 'merchantTransId', 'order-' || n, 'swipeType', 'C')),
    i.at, i.at
  FROM (
    SELECT n, ('00000000-0000-7000-8000-' || lpad(to_hex(n % ${partners} + 1), 12, '0'))::uuid AS partner_id,
      (lpad(to_hex($1::bigint + n::bigint * ${dayMs - 1} / $4), 12, '0') || '7000' || '8000'
        || lpad(to_hex(n), 12, '0'))::uuid AS id,
      'T' || lpad((n % 5000)::text, 7, '0') AS tid,
      to_timestamp(($1::bigint + n::bigint * ${dayMs - 1} / $4) / 1000.0) AS at
    FROM generate_series($2::integer, $3::integer) AS n) AS i`;

async function* file(): AsyncGenerator<Buffer> {
  let text = "PAN,RRN,STAN,TID,AMOUNT,DATE\n";
  for (let n = 0; n < lines; n += 1) {
    const amount = 1_000 + (n % 1_000) + (n % 100_000 === 7 ? 1 : 0);
    const trace = String((n % 999_999) + 1).padStart(6, "0");
    const tid = `T${String(n % 5_000).padStart(7, "0")}`;
    text += `4111111111111111,${String(n).padStart(12, "0")},${trace},${tid},${amount},${day}\n`;
    if (n % linesPerPiece !== 0) continue;
    yield Buffer.from(text);
    text = "";
  }
  yield Buffer.from(text);
}

async function main(): Promise<void> {
  const cleanup = new Cleanup();
  try {
    const around = await startEnvironment(cleanup, { redis: false, postgresSettings: { max_wal_size: "4GB" } });
    const databaseUrl = await around.newDatabase("clearing");
    await prepareSchema({ databaseUrl });
    const database = openDatabase(databaseUrl, { connectionsMax: 10, onIdleError: () => undefined });
    cleanup.add(() => database.close());
    await database.pool.query(insertPartners, [partners]);
    for (let from = 0; from < lines; from += 50_000) {
      await database.pool.query(insertTransactions, [dayStartMs, from, Math.min(from + 50_000, lines) - 1, lines]);
    }
    const columns = { refId: "RRN", trace: "STAN", tid: "TID", amount: "AMOUNT", date: "DATE" };
    const section = clearingSchema.parse({ format: "csv", header: true, currency: "VND", columns, daysMax: 3 });
    const clearing = new Clearing({
      store: new PostgresClearing(database, { alerting: false }),
      layoutOf: async () => ({ section, currencies: {}, timeZone: "UTC" }),
      prove: async () => undefined,
      nowMs: Date.now,
      log: createLog("warn", process.stderr),
      keptDays: 400,
    });
    cleanup.add(() => clearing.stop());
    let memoryMb = 0;
    const watch = setInterval(() => {
      memoryMb = Math.max(memoryMb, process.memoryUsage().rss / 2 ** 20);
    }, 50);
    cleanup.add(() => clearInterval(watch));
    const delays = monitorEventLoopDelay({ resolution: 1 });
    delays.enable();
    const cpu = process.cpuUsage();
    const beganMs = performance.now();
    const id = await clearing.receive("bank", "day.csv", file());
    const readMs = performance.now() - beganMs;
    let found = await clearing.file(id);
    while (found.state !== "done") {
      await new Promise((resolve) => setTimeout(resolve, 100));
      found = await clearing.file(id);
    }
    const seconds = (performance.now() - beganMs) / 1_000;
    const { user, system } = process.cpuUsage(cpu);
    delays.disable();
    const { matched, different, missingHere, waiting } = found;
    process.stdout.write(
      `${JSON.stringify({
        lines: found.lines,
        matched,
        different,
        missingHere,
        waiting,
        seconds: Math.round(seconds * 10) / 10,
        cpu_s: Math.round((user + system) / 1e5) / 10,
        read_s: Math.round(readMs / 100) / 10,
        memory_mb: Math.round(memoryMb),
        turn_ms_p999: Math.round(delays.percentile(99.9) / 1e5) / 10,
        turn_ms_max: Math.round(delays.max / 1e5) / 10,
      })}\n`,
    );
  } finally {
    await cleanup.run();
  }
}

await main();
