import { afterAll, beforeAll, expect, test } from "vitest";
import { reportedSale } from "../support/commands.ts";
import { eventually, startTestService, type TestPartner, type WholeService } from "../support/service.ts";
import { crashNode } from "./cluster.ts";

const folder = process.env["PAYBELL_TEST_CITUS_FOLDER"] ?? "";
const batchSize = 20;
const recoversWithinMs = 120_000;

let service: WholeService;
let partners: readonly TestPartner[];

beforeAll(async () => {
  service = await startTestService();
  partners = await Promise.all(Array.from({ length: 4 }, () => service.register()));
}, 120_000);
afterAll(() => service.stop());

test.each([
  ["a worker", 1],
  ["the other worker", 2],
  ["the coordinator", 0],
])(
  "%s is killed under load: nothing acknowledged is lost, nothing else is told",
  async (_, no) => {
    const acknowledged = new Set<string>();
    const told = () =>
      partners.flatMap(({ server }) => server.deliveries.map(({ received }) => received?.ipn.id ?? ""));
    const earlier = new Set(told());
    const sent = new Set<string>();
    let isLoading = true;
    const callers = partners.map(async ({ id }) => {
      while (isLoading) {
        const completions = Array.from({ length: batchSize }, () => reportedSale(id));
        // Repeated until it is taken, as a switch does: what a COMMIT without an answer left is known then.
        while (!(await isTaken(completions))) await new Promise((resolve) => setTimeout(resolve, 100));
      }
    });
    async function isTaken(completions: readonly Readonly<Record<string, unknown>>[]): Promise<boolean> {
      const answer = await service.operator("POST", "/operator/v1/completions", { completions });
      if (answer.status !== 200) return false;
      const results = answer.body["results"] as { result: string; transactionId?: string }[];
      for (const { transactionId } of results) if (transactionId !== undefined) acknowledged.add(transactionId);
      return results.every(({ result }) => result !== "refused");
    }

    await eventually("a load", async () => (acknowledged.size >= 10 * batchSize ? true : undefined), recoversWithinMs);
    const restart = await crashNode(folder, no);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    await restart();
    const atRestart = acknowledged.size;
    await eventually(
      "the load to go on",
      async () => (acknowledged.size >= atRestart + 4 * batchSize ? true : undefined),
      recoversWithinMs,
    );
    isLoading = false;
    await Promise.all(callers);

    await eventually(
      "every acknowledged IPN",
      async () => {
        for (const id of told()) sent.add(id);
        return [...acknowledged].every((id) => sent.has(id)) ? true : undefined;
      },
      recoversWithinMs,
    );
    expect([...sent].filter((id) => !acknowledged.has(id) && !earlier.has(id))).toEqual([]);
  },
  400_000,
);
