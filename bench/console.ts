import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, open, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type BenchEnvironment, Cleanup, databaseUrlOf, startEnvironment } from "./environment.ts";
import { type HistoryPlan, HistoryRows, type KnownRow } from "./history-rows.ts";
import type { ServiceAt } from "./processes/service.ts";
import { saleCommand } from "./sale.ts";
import { closeService, openService } from "./service-rows.ts";
import { median } from "./statistics.ts";

const partners = 100;
const requests = 15;
const limitMs = 100;
const postgresSettings = {
  session_preload_libraries: "auto_explain",
  "auto_explain.log_analyze": "on",
  "auto_explain.log_buffers": "on",
  // History is written once, and read: nothing of it must survive a crash.
  fsync: "off",
  full_page_writes: "off",
  autovacuum: "off",
  max_wal_size: "16GB",
};

/** The lists and searches of the console: a name, and the path with its query. */
function listsOf(known: KnownRow, largest: string, smallest: string): Readonly<Record<string, string>> {
  const notifications = (query: string) => `/operator/v1/notifications?limit=50&${query}`;
  const monthAgo = new Date(Date.now() - 20 * 86_400_000).toISOString();
  const weekAgo = new Date(Date.now() - 7 * 86_400_000).toISOString();
  const digits = known.merchantTransId.replace(/\D/g, "");
  const searches = {
    newest: "",
    pending: "state=pending",
    parked: "state=parked",
    delivered: "state=accepted",
    "of the largest partner": `partner=${largest}`,
    "of the smallest partner": `partner=${smallest}`,
    "since a week": `from=${weekAgo}`,
    "before 20 days": `to=${monthAgo}`,
    "the page after": `after=${known.id}`,
    Voids: "command=VOID",
    "by id": `q=${known.id}`,
    "by transaction": `q=${known.transactionId}`,
    "by reqId": `q=${known.reqId}`,
    "by order": `q=${known.merchantTransId}`,
    "by the order's beginning": `q=${known.merchantTransId.slice(0, -2)}`,
    "by an order that is not there": "q=nobody-has-this",
    "by a part of the order": `contains=${digits.slice(1)}`,
    "by refId": `refId=${600_000_000_000 + Number(digits)}`,
    "by approve code": "approveCode=00002a",
    "by last four": "lastFour=0042",
    "by terminal": "tid=T0000042",
    "by merchant": "mid=NOBODY",
    "by billId of a partner": `billId=nothing&partner=${largest}`,
  };
  const money = ["transactions", "batches", "settlements", "reversals"].flatMap((kind) => [
    [`${kind}`, `/operator/v1/${kind}?limit=50`],
    [`${kind} of the largest partner`, `/operator/v1/${kind}?limit=50&partner=${largest}`],
  ]);
  return {
    ...Object.fromEntries(
      Object.entries(searches).map(([name, query]) => [`notifications: ${name}`, notifications(query)]),
    ),
    "notification: one": `/operator/v1/notifications/${known.id}`,
    ...Object.fromEntries(money),
    "transactions declined": "/operator/v1/transactions?limit=50&state=ERROR",
    "transactions under way": "/operator/v1/transactions?limit=50&state=INIT",
    "transactions under way of one": `/operator/v1/transactions?limit=50&state=INIT&partner=${largest}`,
    "reversals given up": "/operator/v1/reversals?limit=50&state=PARKED",
    "reversals under way": "/operator/v1/reversals?limit=50&state=PENDING",
    "transaction: its chain": `/operator/v1/transactions/${known.transactionId}/chain`,
    "overview, hour": "/operator/v1/overview?span=hour",
    "overview, day": "/operator/v1/overview?span=day",
    "overview, week": "/operator/v1/overview?span=week",
    "partner: figures of a day": `/operator/v1/partners/${largest}/figures?span=day`,
    "partners: all": "/operator/v1/partners?limit=500",
    endpoints: "/operator/v1/endpoints?limit=100",
    "endpoints: tripped": "/operator/v1/endpoints?limit=100&state=open",
    audit: "/operator/v1/audit?limit=50",
    "audit: of a person": "/operator/v1/audit?limit=50&actor=support-7",
    "audit: of nobody": "/operator/v1/audit?limit=50&actor=nobody",
  };
}

interface Plan {
  readonly ms: number;
  readonly text: string;
}

/** The plans that PostgreSQL has logged since then: the slowest first. */
async function plansSince(logPath: string, offset: number): Promise<readonly Plan[]> {
  const file = await open(logPath);
  try {
    const { size } = await file.stat();
    const { buffer } = await file.read(Buffer.alloc(size - offset), 0, size - offset, offset);
    const found = buffer.toString("utf8").split(/^(?=\d{4}-\d\d-\d\d .*LOG: {2}duration:)/m);
    return found
      .flatMap((text) => {
        const [, ms] = /duration: ([\d.]+) ms {2}plan:/.exec(text) ?? [];
        return ms === undefined ? [] : [{ ms: Number(ms), text }];
      })
      .sort((a, b) => b.ms - a.ms);
  } finally {
    await file.close();
  }
}

/** The scans of a plan: what they read, along which index, and how often. */
function scansOf({ text }: Plan): readonly string[] {
  return text
    .split("\n")
    .filter((line) => /Scan|Buffers:|Rows Removed/.test(line) && !/never executed/.test(line))
    .map((line) => line.trim());
}

/** A database with history, and its operator: written now, unless an earlier run kept one. */
async function openHistory(
  around: BenchEnvironment,
  cleanup: Cleanup,
  { keepIn, ...plan }: HistoryPlan & { readonly keepIn: string | undefined },
): Promise<{ readonly history: HistoryRows; readonly at: ServiceAt }> {
  const name = "console";
  const kept = join(keepIn ?? around.folder, "service.json");
  const databaseUrl = databaseUrlOf(around.postgres.superuserConnectionString, name);
  const at = existsSync(kept)
    ? (JSON.parse(await readFile(kept, "utf8")) as ServiceAt)
    : await makeFirstSale(around, cleanup, name);
  await writeFile(kept, JSON.stringify(at), { mode: 0o600 });
  const history = await HistoryRows.open(databaseUrl);
  cleanup.add(() => history.close());
  if (!(await history.isWhole())) await history.write(plan, note);
  return { history, at: (await openService(around, cleanup, name, { databaseUrl, register: [], joins: at })).at };
}

/** A service with its partners and one Sale, and stopped again: what history is made from. */
async function makeFirstSale(around: BenchEnvironment, cleanup: Cleanup, name: string): Promise<ServiceAt> {
  const register = Array.from({ length: partners }, () => ({ callBackUrl: around.target.url }));
  const service = await openService(around, cleanup, name, { register });
  const made = await fetch(`${service.at.url}/v1/commands`, {
    method: "POST",
    headers: { authorization: `Bearer ${service.at.partners[0]?.apiKey}`, "content-type": "application/json" },
    body: JSON.stringify(saleCommand(randomUUID(), "T0000001")),
  });
  if (made.status !== 200) throw new Error(`The Sale was answered ${made.status}: ${await made.text()}`);
  await service.process.ask("drained", { attempts: 1 });
  await closeService(service);
  return service.at;
}

function note(line: string): void {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);
}

async function main(cleanup: Cleanup): Promise<void> {
  const { values } = parseArgs({
    options: { rows: { type: "string" }, "rows-per-day": { type: "string" }, "keep-in": { type: "string" } },
  });
  const rows = Number(values.rows ?? 10_000_000);
  const plan = { rows, rowsPerDay: Number(values["rows-per-day"] ?? Math.ceil(rows / 30)) };
  const keepIn = values["keep-in"];
  if (keepIn !== undefined) await mkdir(keepIn, { recursive: true, mode: 0o711 });
  const around = await startEnvironment(cleanup, { redis: false, postgresSettings, keepIn });
  const logPath = join(keepIn ?? around.folder, "home", "postgres.log");
  const { history, at } = await openHistory(around, cleanup, { ...plan, keepIn });
  for (const { name, bytes } of await history.sizes()) note(`${name}: ${(bytes / 2 ** 30).toFixed(2)} GiB`);
  const known = await history.knownRow(plan);
  const { largest, smallest } = await history.partners();
  const get = async (path: string) => {
    const startedMs = performance.now();
    const answer = await fetch(`${at.url}${path}`, { headers: { authorization: `Bearer ${at.operatorToken}` } });
    const body = (await answer.json()) as { readonly items?: readonly unknown[] };
    if (answer.status !== 200) throw new Error(`${path} was answered ${answer.status}: ${JSON.stringify(body)}`);
    return { ms: performance.now() - startedMs, items: body.items?.length };
  };
  for (const [name, path] of Object.entries(listsOf(known, largest, smallest))) {
    const { ms: firstMs, items } = await get(path);
    const times: number[] = [];
    for (let nth = 0; nth < requests; nth += 1) times.push((await get(path)).ms);
    const [typical, most] = [median(times), Math.max(...times)].map((ms) => ms.toFixed(0));
    const figures = `${typical} ms (first ${firstMs.toFixed(0)}, most ${most})`;
    process.stdout.write(
      `${median(times) > limitMs ? "SLOW " : ""}${name}: ${figures}${items === undefined ? "" : `, ${items} items`}\n`,
    );
    await history.explain(0);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const file = await open(logPath);
    const { size } = await file.stat();
    await file.close();
    await get(path);
    await history.explain(-1);
    const [slowest] = await plansSince(logPath, size);
    if (slowest !== undefined)
      for (const line of [`${slowest.ms} ms`, ...scansOf(slowest)].slice(0, 24)) process.stdout.write(`    ${line}\n`);
  }
}

// `npm run bench:console`: the time of each list of the console with ten million notifications. It needs 30 GB of disk.
if (import.meta.main) {
  const cleanup = new Cleanup();
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void cleanup.run().then(() => process.exit(130)));
  try {
    await main(cleanup);
  } finally {
    await cleanup.run();
  }
  process.exit(0);
}
