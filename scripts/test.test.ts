import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { temporaryFolder } from "../test/support/temporary.ts";
import { type Check, runChecks } from "./tests/checks.ts";
import { countsLine, readReport } from "./tests/report.ts";

let directory = "";

beforeEach(() => {
  directory = temporaryFolder();
});

/** The counts, and what was written about each check. */
async function run(checks: readonly Check[]) {
  const written: string[] = [];
  const counts = await runChecks(checks, { cwd: directory, env: process.env }, (text) => written.push(text));
  return { counts, written: written.join("").replaceAll(/\(\d+\.\d s\)/g, "(… s)") };
}

function script(name: string, text: string): Check {
  return { name, command: process.execPath, args: ["-e", text] };
}

describe("static checks", () => {
  test("say one line when they pass, and everything they wrote when they fail", async () => {
    expect(await run([script("good", "process.stdout.write('much to say\\n'.repeat(100))")])).toEqual({
      counts: { passed: 1, failed: 0 },
      written: "  ok    good (… s)\n",
    });
    expect(
      await run([script("bad", "process.stdout.write('out\\n'); process.stderr.write('err\\n'); process.exit(3)")]),
    ).toEqual({ counts: { passed: 0, failed: 1 }, written: "  FAIL  bad (… s)\n\nout\nerr\n\n" });
  });

  test("fail when their command does not exist, and when a signal ends them", async () => {
    const { counts, written } = await run([
      { name: "absent", command: join(directory, "absent"), args: [] },
      script("killed", "process.kill(process.pid, 'SIGKILL')"),
    ]);

    expect(counts).toEqual({ passed: 0, failed: 2 });
    expect(written).toContain("ENOENT");
  });

  test("run two at a time", async () => {
    const journal = join(directory, "journal");
    const write = `require("node:fs").appendFileSync(${JSON.stringify(journal)}, `;

    const { counts } = await run(
      Array.from({ length: 6 }, (_, index) =>
        script(`check ${index}`, `${write}"+"); process.on("exit", () => ${write}"-"))`),
      ),
    );

    let running = 0;
    const depths = [...readFileSync(journal, "utf8")].map((sign) => {
      running += sign === "+" ? 1 : -1;
      return running;
    });
    expect(counts.passed).toBe(6);
    expect(depths).toHaveLength(12);
    expect(Math.max(...depths)).toBeLessThanOrEqual(2);
  });
});

describe("the counts", () => {
  /** The counts of a run with this report. */
  const countsOf = (counts: object | undefined, exitCode: number | null) => {
    const file = join(directory, "report.json");
    const none = { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] };
    if (counts !== undefined) writeFileSync(file, JSON.stringify({ ...none, ...counts }));
    return readReport(file, exitCode, directory).counts;
  };

  test("are those of the tests, a test still to be written counting as skipped", () => {
    const counts = countsOf({ numPassedTests: 5, numFailedTests: 2, numPendingTests: 1, numTodoTests: 1 }, 1);

    expect(counts).toEqual({ passed: 5, failed: 2, skipped: 2 });
    expect(countsLine(counts)).toBe("5 passed, 2 failed, 2 skipped");
  });

  test("hold a failure when vitest failed without a failed test", () => {
    expect(countsOf({ numPassedTests: 5 }, 1)).toEqual({ passed: 5, failed: 1, skipped: 0 });
    expect(countsOf({ numPassedTests: 5 }, null)).toEqual({ passed: 5, failed: 1, skipped: 0 });
  });

  test("hold a failure when no report was written, or no test ran", () => {
    expect(countsOf(undefined, 0)).toEqual({ passed: 0, failed: 1, skipped: 0 });
    expect(countsOf({ numPendingTests: 3 }, 0)).toEqual({ passed: 0, failed: 1, skipped: 3 });
  });
});

test("tests that lack a program are counted, and named with what installs it", () => {
  const nginx = "nginx: apt-get install nginx";
  const result = (title: string, ancestorTitles: readonly string[], meta: object) => ({ title, ancestorTitles, meta });
  const assertionResults = [
    result("accepts the sample", ["nginx"], { missing: [nginx] }),
    result("terminates TLS", ["nginx", "with TLS"], { missing: [nginx] }),
    result("needs two", [], { missing: [nginx, "zsh: apt-get install zsh"] }),
    result("needs nothing", [], {}),
  ];
  const file = join(directory, "report.json");
  writeFileSync(
    file,
    JSON.stringify({ testResults: [{ name: join(directory, "test/proxies.test.ts"), assertionResults }] }),
  );

  const report = readReport(file, 0, directory);

  expect(report.lacking).toBe(3);
  expect(report.missing).toBe(
    `Not run, because this machine lacks something:
  nginx: apt-get install nginx
    test/proxies.test.ts: nginx (2 tests)
    test/proxies.test.ts: needs two
  zsh: apt-get install zsh
    test/proxies.test.ts: needs two
`,
  );
  expect(readReport(join(directory, "absent.json"), 0, directory).missing).toBe("");
});

test("an old Node gets one clear line", () => {
  const text = readFileSync(join(import.meta.dirname, "require-node.js"), "utf8");
  const older = text.replaceAll("process.versions.node", '"20.19.0"');
  expect(older).not.toBe(text);

  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", older], { encoding: "utf8" });

  expect(status).toBe(1);
  expect(stderr).toMatch(/^Paybell's own commands need Node 26 and found 20\.19\.0: run "npm ci".*\n$/);
});
