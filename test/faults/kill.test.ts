import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { reportedSale } from "../support/commands.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { type Instance, partnerHost, spawnInstance } from "../support/instance.ts";
import type { TestPartner } from "../support/service.ts";

const completions = 1_500;
const batchSize = 100;
const killAfter = 500;
const callersMax = 4;

let database: TestDatabase;
let victim: Instance;
let survivor: Instance;
let partner: TestPartner;
beforeAll(async () => {
  database = await createDatabase();
  const { host, callsLoopback } = partnerHost();
  const how = { databaseUrl: database.url, masterKey: randomBytes(32), callsLoopback };
  // The first one migrates, and stores the check of the master key.
  victim = await spawnInstance(how);
  survivor = await spawnInstance(how);
  partner = await victim.register({}, { host });
});
afterAll(async () => {
  survivor.signal("SIGTERM");
  victim.signal("SIGKILL");
  expect(await survivor.exited).toBe(0);
  await victim.exited;
  await partner.server.close();
  await database.drop();
});

/** Reports again what was not answered, to the other instance, as a switch does. */
async function reportBatch(size: number): Promise<readonly string[]> {
  const batch = Array.from({ length: size }, () => reportedSale(partner.id));
  return victim.report(batch).catch((error: unknown) => {
    if (!(error instanceof TypeError)) throw error;
    return survivor.report(batch);
  });
}

test("kill -9 of one of two instances in the middle of 1,500 loses none of them", async () => {
  const accepted: string[] = [];
  let batches = completions / batchSize;
  const callers = Array.from({ length: callersMax }, async () => {
    while (batches > 0) {
      batches -= 1;
      accepted.push(...(await reportBatch(batchSize)));
    }
  });
  await partner.server.until((all) => all.length >= killAfter);
  victim.signal("SIGKILL");
  expect(await victim.exited).toBeNull();
  await Promise.all(callers);
  expect(new Set(accepted).size).toBe(completions);

  const seen = new Set<string>();
  let looked = 0;
  await partner.server.until((all) => {
    for (; looked < all.length; looked += 1) seen.add(all[looked]?.received?.ipn.id ?? "refused");
    return seen.size >= completions;
  });
  expect(seen).toEqual(new Set(accepted));
  // At least once: IPNs that arrived without a record come again, at most as many as one instance has in flight.
  const duplicates = partner.server.deliveries.length - completions;
  expect(duplicates).toBeLessThanOrEqual(512);
});
