import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { type SpokenProcess, spawnPaybell } from "../support/instance.ts";
import { type AcquirerHost, needsHost, startHost } from "./host.ts";

const needed = needsHost();
const profile = join(import.meta.dirname, "../../docs/operator/acquirer-profile.json");
const options = ["--mid", "M00000000000001", "--tid", "T0000001", "--token", "tok_approve", "--amount", "10000"];

describe("paybell acquirer test", needed, () => {
  let host: AcquirerHost;
  beforeAll(async () => {
    host = await startHost();
  });
  beforeEach(() => host.order("forget"));
  afterAll(() => host.stop());

  const env = (hosts: string) => ({
    PAYBELL_ACQUIRER: "iso8583",
    PAYBELL_ACQUIRER_PROFILE: profile,
    PAYBELL_ACQUIRER_HOSTS: hosts,
    PAYBELL_ACQUIRER_TLS: "off",
    // Two messages are not answered. Any other is, although the machine may pause for five seconds.
    PAYBELL_ACQUIRER_TIMEOUT_MS: "10000",
  });

  function run(more: readonly string[], change: NodeJS.ProcessEnv = {}): SpokenProcess {
    return spawnPaybell(["acquirer", "test", ...options, ...more], { ...env(`127.0.0.1:${host.port}`), ...change });
  }

  test("runs each step with its messages, and leaves nothing charged", async () => {
    const ended = run(["--trace", "999998"]);
    expect(await ended.exited, ended.output()).toBe(0);
    const output = ended.output();
    expect(output.match(/^(?:ok|ERROR) .*$/gm)?.map((line) => line.slice(0, 29).trim())).toEqual([
      "ok     Sign-on",
      "ok     Logon",
      "ok     Sale",
      "ok     Void",
      "ok     Sale, to be reversed",
      "ok     Reversal",
      "ok     Settlement",
    ]);
    expect(output).toContain("MTI  0200");
    expect(output).toContain(` 63  ${"0000100000001000000".repeat(2)}`);
    expect(output).toContain(" 11  000001");
    expect(output).not.toContain("tok_approve");
    const books = (await host.order("books")).join();
    expect(books).not.toContain("stands");
  });

  test("says which step failed, and reverses the Sale that was not answered", async () => {
    const ended = run(["--token", "tok_timeout", "--json"]);
    expect(await ended.exited, ended.output()).toBe(1);
    const { ok, steps } = JSON.parse(ended.output()) as { ok: boolean; steps: { step: string; ok: boolean }[] };
    expect(ok).toBe(false);
    expect(steps.filter((step) => !step.ok).map(({ step }) => step)).toEqual(["Sale", "Sale, to be reversed"]);
    expect(steps.filter(({ step }) => step === "Reversal")).toHaveLength(2);
    expect((await host.order("books")).join()).not.toContain("stands");
  });

  test("sends nothing if options or settings are wrong, and names all of them", async () => {
    const ended = run(["--amount", "0", "--batch", "1"], { PAYBELL_ACQUIRER: "simulator" });
    expect(await ended.exited).toBe(2);
    expect(ended.output().trim().split("\n")).toEqual([
      "paybell: PAYBELL_ACQUIRER=iso8583 is required: there is no host to test",
      "paybell: --amount must be above zero",
      "paybell: --batch must be six digits",
    ]);
  });

  test("names each problem of a profile that cannot be used", async () => {
    const ended = run([], { PAYBELL_ACQUIRER_PROFILE: join(import.meta.dirname, "../../package.json") });
    expect(await ended.exited).toBe(2);
    expect(ended.output()).toContain("framing: Invalid input");
  });

  test("uses the next host if one cannot be reached, and says so", async () => {
    const ended = run([], { PAYBELL_ACQUIRER_HOSTS: `127.0.0.1:1,127.0.0.1:${host.port}` });
    expect(await ended.exited, ended.output()).toBe(0);
    expect(ended.output()).toContain("unusable 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1");
  });

  test("paybell check signs on too, and says where, or why not", async () => {
    const database = await createDatabase();
    const acquirerLine = async (hosts: string) => {
      const ended = spawnPaybell(["check"], { ...env(hosts), DATABASE_URL: database.url });
      await ended.exited;
      return ended.output().match(/^.*? acquirer .*$/m)?.[0];
    };
    expect(await acquirerLine(`127.0.0.1:${host.port}`)).toMatch(/^ok +acquirer +signed on at 127\.0\.0\.1:\d+/);
    expect(await acquirerLine("127.0.0.1:1")).toMatch(/^ERROR +acquirer +127\.0\.0\.1:1: connect ECONNREFUSED/);
    await database.drop();
  });
});
