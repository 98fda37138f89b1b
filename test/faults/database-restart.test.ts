import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../packages/server/src/postgres/embedded.ts";
import { reportedSale } from "../support/commands.ts";
import { testHomePrefix } from "../support/leftovers.ts";
import {
  eventually,
  type HttpAnswer,
  startTestService,
  type TestPartner,
  type WholeService,
} from "../support/service.ts";

const batchSize = 20;

let folder: string;
let postgres: EmbeddedPostgres;
let service: WholeService;
let partner: TestPartner;

function startPostgres(): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({
    home: join(folder, "home"),
    systemDirectory: join(folder, "system"),
    log: () => undefined,
    settings: { fsync: "off" },
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), testHomePrefix));
  await chmod(folder, 0o711);
  postgres = await startPostgres();
  const url = postgres.superuserConnectionString;
  service = await startTestService({ database: { url, serviceUrl: url, drop: async () => undefined } });
  partner = await service.register();
});
afterAll(async () => {
  await service.stop();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Sessions are ended first, so nothing has to be recovered. */
async function stopFast(): Promise<void> {
  await postgres.stop();
}

/** As in a crash: work in progress is cut off, and the log is replayed at the next start. */
async function stopAtOnce(): Promise<void> {
  process.kill(postgres.pid, "SIGQUIT");
  await postgres.died;
  await postgres.stop();
}

test.each([
  ["stopped", stopFast],
  ["crashed", stopAtOnce],
])("PostgreSQL %s and started again under load: 503 meanwhile, and nothing accepted is lost", async (_, stop) => {
  const earlier = partner.server.deliveries.length;
  const accepted = new Set<string>();
  const refusals: HttpAnswer[] = [];
  const refused = Promise.withResolvers<void>();
  let loading = true;
  /** Repeats a batch until it is accepted, without the wait of Retry-After. */
  async function reportBatch(): Promise<void> {
    const completions = Array.from({ length: batchSize }, () => reportedSale(partner.id));
    for (;;) {
      const answer = await service.operator("POST", "/operator/v1/completions", { completions });
      if (answer.status === 200) {
        const results = answer.body["results"] as { result: string; transactionId?: string }[];
        // Some items of a report may have become durable before PostgreSQL stopped, and others not.
        for (const { transactionId } of results) if (transactionId !== undefined) accepted.add(transactionId);
        if (results.every(({ result }) => result !== "refused")) return;
        continue;
      }
      refusals.push(answer);
      refused.resolve();
    }
  }
  const callers = Array.from({ length: 3 }, async () => {
    while (loading) await reportBatch();
  });

  await partner.server.until((all) => all.length >= earlier + 10 * batchSize);
  await stop();
  await refused.promise;
  postgres = await startPostgres();
  const before = accepted.size;
  await eventually("reports to be accepted again", async () =>
    accepted.size >= before + 5 * batchSize ? true : undefined,
  );
  loading = false;
  await Promise.all(callers);

  for (const { status, body, headers } of refusals) {
    expect(status).toBe(503);
    expect(body["code"]).toBe("unavailable");
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  }
  const delivered = new Set<string | undefined>();
  let looked = 0;
  await partner.server.until((all) => {
    for (; looked < all.length; looked += 1) delivered.add(all[looked]?.received?.ipn.id);
    return [...accepted].every((id) => delivered.has(id));
  });
  // An answer is kept for a second, and a lease for as long as a beat takes.
  await eventually("the service to be ready", async () => {
    const answer = await fetch(`${service.baseUrl}/readyz`);
    return ((await answer.json()) as { ready: boolean }).ready ? true : undefined;
  });
});
