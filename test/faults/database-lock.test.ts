import { Client } from "pg";
import { describe, expect, test } from "vitest";
import { schemasOfHomes } from "../../packages/server/src/store/database/homes.ts";
import { reportedSale, sale } from "../support/commands.ts";
import { countRows } from "../support/rows.ts";
import { eventually, type HttpAnswer, startTestService, type WholeService } from "../support/service.ts";

const completionsPath = "/operator/v1/completions";

type Table = "pending" | "transactions";

interface Lock {
  release(): Promise<void>;
}

/** The effect of an unlucky migration or a forgotten session: nothing else can read or write the table. */
async function lockTable(service: WholeService, table: Table): Promise<Lock> {
  const client = new Client({ connectionString: service.database.url });
  await client.connect();
  const homes = await schemasOfHomes(client);
  const tables = homes.length === 0 ? [table] : homes.map((home) => `${home}.${table}`);
  await client.query("BEGIN");
  await client.query(`LOCK TABLE ${tables.join(", ")} IN ACCESS EXCLUSIVE MODE`);
  let released: Promise<void> | undefined;
  return {
    release() {
      // Its transaction ends with it.
      released ??= client.end();
      return released;
    },
  };
}

function expectUnavailable({ status, body, headers }: HttpAnswer): void {
  expect({ status, code: body["code"] }).toEqual({ status: 503, code: "unavailable" });
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
}

/** Each with a service of its own: most of their time they wait for a statement to be given up. */
async function withService(
  use: (service: WholeService, lock: (table: Table) => Promise<Lock>) => Promise<void>,
): Promise<void> {
  const service = await startTestService();
  const locks: Lock[] = [];
  try {
    await use(service, async (table) => {
      const lock = await lockTable(service, table);
      locks.push(lock);
      return lock;
    });
  } finally {
    await Promise.all(locks.map((lock) => lock.release()));
    await service.stop();
  }
}

describe.concurrent("while another session locks a table,", () => {
  test("reports end in 503, accepted notifications wait, and everything continues by itself", () =>
    withService(async (service, lockNow) => {
      const partner = await service.register();
      const answered = Promise.withResolvers<void>();
      partner.server.answers({ when: answered.promise, status: 204 });
      const before = await partner.run(sale());
      await partner.server.next(1);

      const lock = await lockNow("pending");
      // Its outcome cannot be recorded now, and the next one's result cannot be written.
      answered.resolve();
      const asked = await partner.run(sale(), { prefer: "respond-async" });
      expect(asked.status).toBe(202);
      const batches = [1, 2].map(() => [reportedSale(partner.id), reportedSale(partner.id)]);
      const report = (completions: unknown) => service.operator("POST", completionsPath, { completions });
      for (const answer of await Promise.all(batches.map(report))) expectUnavailable(answer);
      expect(partner.server.deliveries).toHaveLength(1);
      await lock.release();

      const repeated = await Promise.all(batches.map((completions) => service.report(completions)));
      const ids = [before.body["id"], asked.body["id"], ...repeated.flat()];
      await partner.server.until((all) => {
        const seen = new Set<unknown>(all.map(({ received }) => received?.ipn.id));
        return ids.every((id) => seen.has(id));
      });
      const first = await partner.settled((before.body["notification"] as { id: string }).id, "accepted");
      expect(first["attempts"]).toHaveLength(1);
      // Written once, sent once: what was refused left nothing behind.
      expect(partner.server.deliveries).toHaveLength(ids.length);
    }));

  test("a command that cannot begin ends in 503, and its repeat counts as new", () =>
    withService(async (service, lockNow) => {
      const partner = await service.register();
      const command = sale();
      const lock = await lockNow("transactions");
      expectUnavailable(await partner.call("POST", "/v1/commands", { json: command }));
      await lock.release();
      const done = await eventually("the command to be taken", async () => {
        const answer = await partner.run(command);
        return answer.status === 503 ? undefined : answer;
      });
      expect(done).toMatchObject({ status: 200, body: { status: "SUCCESS", reqId: command["reqId"] } });
      const [delivery] = await partner.server.next(1);
      expect(delivery?.received?.ipn.id).toBe(done.body["id"]);
      // Had the acquirer been asked twice, the terminal would have given two numbers.
      const next = await partner.run(sale());
      expect([done, next].map(({ body }) => Number(body["invoiceNo"]))).toEqual([1, 2]);
    }));

  test("at most the allowed number waits, and the rest is refused immediately", () =>
    withService(async (service, lockNow) => {
      const { id } = await service.register();
      // Kept, and not sent: what is counted here is what was written.
      await service.operator("POST", `/operator/v1/partners/${id}/pause`);
      const lock = await lockNow("pending");
      const refusedOne = Promise.withResolvers<void>();
      const reports = Array.from({ length: 24 }, async () => {
        const completions = Array.from({ length: 1_000 }, () => reportedSale(id));
        const { status, body } = await service.operator("POST", completionsPath, { completions });
        const results = (body["results"] ?? []) as { result: string; problem?: { code: string } }[];
        const accepted = results.filter(({ result }) => result === "accepted").length;
        expect([200, 503]).toContain(status);
        for (const { problem } of results) if (problem) expect(problem.code).toBe("unavailable");
        if (accepted === 0) refusedOne.resolve();
        return accepted;
      });
      await refusedOne.promise;
      await lock.release();
      const accepted = (await Promise.all(reports)).reduce((sum, count) => sum + count, 0);
      expect(accepted).toBeLessThan(24_000);
      expect(await countRows(service.database, ["pending"])).toEqual({ pending: accepted });
    }));
});
