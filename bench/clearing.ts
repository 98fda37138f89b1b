import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import { Caller, type CallerResponse } from "../faults/caller.ts";
import { ownTree, ServiceInstance } from "../faults/instance.ts";
import { freePort } from "../test/support/ports.ts";
import { type Cleanup, runCommand } from "./command.ts";
import { copyRows } from "./copied-rows.ts";
import { startPostgres } from "./environment.ts";
import { serviceFlags } from "./service-rows.ts";

const money = { amount: "150000", currency: "VND" };
const token = randomBytes(32).toString("hex");

/** @returns the body of the answer */
type Call = (method: "GET" | "POST" | "PUT", path: string, json?: unknown) => Promise<CallerResponse["body"]>;

/**
 * `npm run bench:clearing -- <lines>`: drops a clearing file into the folder of a `paybell serve`, whose ledger has as
 * many Sales of that day. Of a thousand lines one has another amount, and one no Sale, which then has no line.
 */
async function run(cleanup: Cleanup): Promise<number> {
  const lines = Number(process.argv[2] ?? 1_000_000);
  const { folder, postgres } = await startPostgres(cleanup);
  const drop = join(folder, "bank");
  await mkdir(drop);
  const service = new ServiceInstance({
    tree: ownTree,
    nodeArguments: [...serviceFlags, `--import=${new URL("./processes/turns.ts", import.meta.url)}`],
    port: await freePort(),
    operatorPort: await freePort(),
    env: {
      DATABASE_URL: postgres.ownerConnectionString,
      PAYBELL_MASTER_KEY: randomBytes(32).toString("base64"),
      PAYBELL_OPERATOR_TOKEN: token,
      PAYBELL_ACQUIRER: "simulator",
      PAYBELL_CLEARING_FOLDER: folder,
      PAYBELL_HOME: folder,
    },
  });
  cleanup.add(() => service.kill());
  await service.start();
  const caller = new Caller([service]);
  cleanup.add(() => caller.close());
  const call: Call = async (method, path, json) => {
    const { status, body } = await caller.call(method, path, token, json);
    if (status < 200 || status > 299) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`);
    return body;
  };
  await call("PUT", "/operator/v1/acquirers/bank", await acquirer());
  await writeSales(call, postgres.superuserConnectionString, lines);
  await pipeline(Readable.from(textOf(lines)), createWriteStream(join(drop, "day.csv.part")));
  service.signal("SIGUSR2");
  const startedMs = performance.now();
  await rename(join(drop, "day.csv.part"), join(drop, "day.csv"));
  for (;;) {
    await pause(100);
    const { items } = (await call("GET", "/operator/v1/clearing-files")) as { items?: Record<string, unknown>[] };
    if (items?.[0]?.["state"] !== "done") continue;
    const { matched, missingHere, missingThere, different } = items[0];
    const elapsedS = (performance.now() - startedMs) / 1_000;
    await service.stop();
    const figures = service.lines.find((line) => line.startsWith("turns "))?.slice("turns ".length) ?? "{}";
    const found = { lines, matched, missingHere, missingThere, different, elapsedS, ...JSON.parse(figures) };
    process.stdout.write(`${JSON.stringify(found)}\n`);
    return 0;
  }
}

async function acquirer() {
  const profile = JSON.parse(await readFile(join(ownTree, "docs/operator/acquirer-profile.json"), "utf8")) as object;
  const columns = { kind: "TYPE", refId: "RRN", trace: "STAN", tid: "TID", amount: "AMOUNT", date: "DATE" };
  const form = { format: "csv", header: true, currency: money.currency, kinds: { S: "sale" }, daysMax: 0 };
  const clearing = { ...form, columns };
  return { profile: { ...profile, localTimeZone: "UTC", clearing }, hosts: ["127.0.0.1:9"], tls: "off" };
}

/** Copies of a Sale that was reported: of yesterday, over twenty hours, with ids that begin with their time. */
async function writeSales(call: Call, databaseUrl: string, lines: number) {
  const addresses = { callbackAddresses: ["203.0.113.0/24"], callingAddresses: ["127.0.0.0/8"] };
  const partner = { name: "Bench", callBackUrl: "https://203.0.113.1/ipn", ...addresses };
  const { id } = await call("POST", "/operator/v1/partners", partner);
  await call("POST", `/operator/v1/partners/${id}/pause`, { reason: "nothing is sent" });
  const outcome = { command: "SALE", status: "SUCCESS", isoResponseCode: "00", ...money };
  const named = { refId: "REFERENCE000", traceNo: "TRACE0", tid: "T0000001", mid: "M00000000000001" };
  const completions = [{ partnerId: id, externalId: "sale", ...outcome, ...named }];
  await call("POST", "/operator/v1/completions", { completions });
  const at = "date_trunc('day', now(), 'UTC') - interval '1 hour' - i * interval '20 hours' / $2::integer";
  const ms = `lpad(to_hex((extract(epoch FROM ${at}) * 1000)::bigint), 12, '0')`;
  const facts = "replace(t.facts::text, 'REFERENCE000', lpad(i::text, 12, '0'))";
  const changed = {
    id: `(${ms} || '70008000' || lpad(to_hex(i), 12, '0'))::uuid`,
    external_id: "i::text",
    acquirer: "'bank'",
    created_at: at,
    completed_at: at,
    facts: `replace(${facts}, 'TRACE0', lpad((i % 1000000)::text, 6, '0'))::json`,
  };
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  await copyRows(client, "transactions", "transactions", changed, [1, lines]);
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
