import dns from "node:dns";
import { Writable } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { runCheck, runMigrate } from "./run.ts";
import { runAcquirerTest } from "./run-acquirer-test.ts";

/** A name with an address of each family; at neither is anything listening. */
const dualHost = "dual.test";

beforeEach(() => {
  vi.spyOn(dns, "lookup").mockImplementation(((
    _: string,
    options: { all?: boolean },
    done: (...found: unknown[]) => void,
  ) => {
    const all = [
      { address: "::1", family: 6 },
      { address: "127.0.0.1", family: 4 },
    ];
    process.nextTick(() => (options.all === true ? done(null, all) : done(null, "::1", 6)));
  }) as never);
});
afterEach(() => vi.restoreAllMocks());

/** A process of these settings, which keeps what is printed. */
function processOf(env: Readonly<Record<string, string>>) {
  let text = "";
  const stream = () =>
    new Writable({
      write(chunk, _, done) {
        text += String(chunk);
        done();
      },
    });
  const process = { stdout: stream(), stderr: stream(), env } as unknown as NodeJS.Process;
  return { process, printed: () => text };
}

const refused = /connect E\w+ (::1|127\.0\.0\.1):9\b/;
const databaseUrl = `postgres://paybell:p@${dualHost}:9/paybell`;

test("a database that is reached at none of its addresses is reported with a reason", async () => {
  const migrated = processOf({ DATABASE_URL: databaseUrl });
  expect(await runMigrate(migrated, { json: false })).toBe(1);
  expect(migrated.printed()).toMatch(refused);
  const checked = processOf({ DATABASE_URL: databaseUrl });
  expect(await runCheck(checked, { json: false })).toBe(1);
  expect(checked.printed()).toMatch(new RegExp(`cannot be reached: ${refused.source}`));
});

test("an acquirer test says why the registered acquirers cannot be read", async () => {
  const tested = processOf({ DATABASE_URL: databaseUrl, PAYBELL_MASTER_KEY: Buffer.alloc(32, 1).toString("base64") });
  const options = {
    name: "bank",
    mid: "1",
    tid: "2",
    token: "tok",
    amount: "1000",
    currency: "VND",
    batch: "000001",
    trace: "1",
  };
  expect(await runAcquirerTest(tested, { ...options, json: false })).toBe(2);
  expect(tested.printed()).toMatch(refused);
});
