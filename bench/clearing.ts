import { spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rename } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import { startEmbeddedPostgres } from "../packages/server/src/postgres/embedded.ts";
import { type Cleanup, runCommand } from "./environment.ts";

const root = join(import.meta.dirname, "..");
const money = { amount: "150000", currency: "VND" };

/**
 * `npm run bench:clearing -- <lines>`: drops a clearing file into the folder of a `paybell serve`, whose ledger has as
 * many Sales of that day. Of a thousand lines one has another amount, and one no Sale, which then has no line.
 */
async function run(cleanup: Cleanup): Promise<number> {
  const lines = Number(process.argv[2] ?? 1_000_000);
  const folder = await mkdtemp(join(tmpdir(), "paybell-bench-"));
  cleanup.addFolder(folder);
  // As root, PostgreSQL runs as another user, who passes through here.
  await chmod(folder, 0o711);
  const places = { home: join(folder, "home"), systemDirectory: join(folder, "system") };
  const postgres = await startEmbeddedPostgres({ ...places, log: () => undefined });
  cleanup.add(() => postgres.stop());
  const drop = join(folder, "bank");
  await mkdir(drop);
  const service = await serve(cleanup, postgres.ownerConnectionString, folder);
  await service.call("PUT", "/operator/v1/acquirers/bank", await acquirer());
  await writeSales(service, postgres.superuserConnectionString, lines);
  await pipeline(Readable.from(textOf(lines)), createWriteStream(join(drop, "day.csv.part")));
  const memoryMbIdle = await service.memoryMb();
  service.child.kill("SIGUSR2");
  const startedMs = performance.now();
  await rename(join(drop, "day.csv.part"), join(drop, "day.csv"));
  for (;;) {
    await pause(100);
    const { items } = (await service.call("GET", "/operator/v1/clearing-files")) as {
      items: Record<string, unknown>[];
    };
    if (items[0]?.["state"] !== "done") continue;
    const { matched, missingHere, missingThere, different } = items[0];
    const elapsedS = (performance.now() - startedMs) / 1_000;
    const found = { lines, matched, missingHere, missingThere, different, elapsedS, memoryMbIdle };
    process.stdout.write(`${JSON.stringify({ ...found, ...(await service.end()) })}\n`);
    return 0;
  }
}

async function serve(cleanup: Cleanup, databaseUrl: string, folder: string) {
  const token = randomUUID() + randomUUID();
  // As `npm run paybell` starts it.
  const flags = ["--max-old-space-size=1024", "--heap-growing-percent=100", "--v8-pool-size=2"];
  flags.push("--conditions=paybell-source", `--import=${new URL("./processes/turns.ts", import.meta.url)}`);
  const child = spawn(process.execPath, [...flags, join(root, "packages/cli/bin/paybell.js"), "serve"], {
    env: {
      PATH: process.env["PATH"],
      DATABASE_URL: databaseUrl,
      PAYBELL_MASTER_KEY: randomBytes(32).toString("base64"),
      PAYBELL_OPERATOR_TOKEN: token,
      PAYBELL_ACQUIRER: "simulator",
      PAYBELL_CLEARING_FOLDER: folder,
      PAYBELL_HOME: folder,
      PAYBELL_PORT: "17420",
      PAYBELL_OPERATOR_PORT: "17421",
      PAYBELL_STOP_NOTICE_MS: "0",
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  cleanup.add(() => void child.kill("SIGKILL"));
  const ready = Promise.withResolvers<void>();
  let figures = "{}";
  child.on("exit", () => ready.reject(new Error("paybell serve has ended")));
  createInterface(child.stdout).on("line", (line) => {
    if (line.includes('"ready"')) ready.resolve();
    if (line.startsWith("turns ")) figures = line.slice("turns ".length);
  });
  await ready.promise;
  const fetched = async (method: string, path: string, json?: unknown): Promise<string> => {
    const headers = {
      authorization: `Bearer ${token}`,
      ...(json !== undefined && { "content-type": "application/json" }),
    };
    const body = json === undefined ? null : JSON.stringify(json);
    const response = await fetch(`http://127.0.0.1:17421${path}`, { method, headers, body });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${text}`);
    return text;
  };
  return {
    child,
    call: async (...call: Parameters<typeof fetched>) => JSON.parse(await fetched(...call)) as unknown,
    memoryMb: async () =>
      Number(/^process_resident_memory_bytes (\S+)$/m.exec(await fetched("GET", "/metrics"))?.[1]) / 2 ** 20,
    end: async () => {
      child.kill("SIGTERM");
      await once(child, "close");
      return JSON.parse(figures) as object;
    },
  };
}

async function acquirer() {
  const profile = JSON.parse(await readFile(join(root, "docs/operator/acquirer-profile.json"), "utf8")) as object;
  const columns = { kind: "TYPE", refId: "RRN", trace: "STAN", tid: "TID", amount: "AMOUNT", date: "DATE" };
  const form = { format: "csv", header: true, currency: money.currency, kinds: { S: "sale" }, daysMax: 0 };
  const clearing = { ...form, columns };
  return { profile: { ...profile, localTimeZone: "UTC", clearing }, hosts: ["127.0.0.1:9"], tls: "off" };
}

/** Copies of a Sale that was reported: of yesterday, over twenty hours, with ids that begin with their time. */
async function writeSales(service: Awaited<ReturnType<typeof serve>>, databaseUrl: string, lines: number) {
  const addresses = { callbackAddresses: ["203.0.113.0/24"], callingAddresses: ["127.0.0.0/8"] };
  const partner = { name: "Bench", callBackUrl: "https://203.0.113.1/ipn", ...addresses };
  const { id } = (await service.call("POST", "/operator/v1/partners", partner)) as { id: string };
  await service.call("POST", `/operator/v1/partners/${id}/pause`, { reason: "nothing is sent" });
  const outcome = { command: "SALE", status: "SUCCESS", isoResponseCode: "00", ...money };
  const named = { refId: "REFERENCE000", traceNo: "TRACE0", tid: "T0000001", mid: "M00000000000001" };
  const completions = [{ partnerId: id, externalId: "sale", ...outcome, ...named }];
  await service.call("POST", "/operator/v1/completions", { completions });
  const at = "date_trunc('day', now(), 'UTC') - interval '1 hour' - i * interval '20 hours' / $1::integer";
  const ms = `lpad(to_hex((extract(epoch FROM ${at}) * 1000)::bigint), 12, '0')`;
  const facts = "replace(facts::text, 'REFERENCE000', lpad(i::text, 12, '0'))";
  const changed: Readonly<Record<string, string>> = {
    id: `(${ms} || '70008000' || lpad(to_hex(i), 12, '0'))::uuid`,
    external_id: "i::text",
    acquirer: "'bank'",
    created_at: at,
    completed_at: at,
    facts: `replace(${facts}, 'TRACE0', lpad((i % 1000000)::text, 6, '0'))::json`,
  };
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query<{ name: string }>(
    `SELECT attname AS name FROM pg_attribute
     WHERE attrelid = 'transactions'::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''`,
  );
  const names = rows.map(({ name }) => name);
  await client.query(
    `INSERT INTO transactions (${names.join(", ")}) SELECT ${names.map((name) => changed[name] ?? name).join(", ")}
     FROM transactions, generate_series(1, $1::integer) AS i`,
    [lines],
  );
  await client.query("DELETE FROM transactions WHERE acquirer = ''");
  await client.query("VACUUM ANALYZE transactions");
  await client.end();
}

function* textOf(lines: number): Generator<string> {
  const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10).replaceAll("-", "");
  yield "TYPE,RRN,STAN,TID,PAN,AMOUNT,DATE\n";
  for (let nth = 1; nth <= lines; nth += 1) {
    const isUnknown = nth % 1_000 === 1;
    const refId = `${isUnknown ? lines + nth : nth}`.padStart(12, "0");
    const trace = isUnknown ? "" : `${nth % 1_000_000}`.padStart(6, "0");
    const amount = nth % 1_000 === 2 ? "150001" : money.amount;
    yield `S,${refId},${trace},T0000001,4111111111111111,${amount},${day}\n`;
  }
}

if (import.meta.main) process.exit(await runCommand(run));
