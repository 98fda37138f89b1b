import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { add, countsLine, countTests } from "./checks/counts.ts";
import { describeMissing, failMissing, readMissing } from "./checks/missing.ts";
import { type Check, type CheckOutcome, describeOutcome, runChecks } from "./checks/run.ts";

let directory = "";

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "paybell-checks-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
});

async function run(checks: readonly Check[]): Promise<CheckOutcome[]> {
  return await runChecks(checks, 2, { cwd: directory, env: process.env, nowMs: () => 0 }, () => undefined);
}

function script(name: string, text: string): Check {
  return { name, command: process.execPath, args: ["-e", text] };
}

describe("static checks", () => {
  test("say one line when they pass, and everything they wrote when they fail", async () => {
    const [passed, failed] = await run([
      script("good", "process.stdout.write('much to say\\n'.repeat(100))"),
      script("bad", "process.stdout.write('out\\n'); process.stderr.write('err\\n'); process.exit(3)"),
    ]).then((outcomes) => outcomes.toSorted((a, b) => b.name.localeCompare(a.name)));

    expect(passed && describeOutcome(passed)).toBe("  ok    good (0.0 s)\n");
    expect(failed && describeOutcome(failed)).toMatch(/^ {2}FAIL {2}bad \(0\.0 s\)\n\n(?:out\nerr|err\nout)\n\n$/);
  });

  test("fail when their command does not exist", async () => {
    const [outcome] = await run([{ name: "absent", command: join(directory, "absent"), args: [] }]);

    expect(outcome?.passed).toBe(false);
    expect(outcome?.output).toContain("ENOENT");
  });

  test("fail when a signal ends them", async () => {
    const [outcome] = await run([script("killed", "process.kill(process.pid, 'SIGKILL')")]);

    expect(outcome?.passed).toBe(false);
  });

  test("run two at a time", async () => {
    const journal = join(directory, "journal");
    const write = `require("node:fs").appendFileSync(${JSON.stringify(journal)}, `;

    const outcomes = await run(
      Array.from({ length: 6 }, (_, index) =>
        script(`check ${index}`, `${write}"+"); process.on("exit", () => ${write}"-"))`),
      ),
    );

    let running = 0;
    const depths = [...readFileSync(journal, "utf8")].map((sign) => {
      running += sign === "+" ? 1 : -1;
      return running;
    });
    expect(outcomes.filter(({ passed }) => passed)).toHaveLength(6);
    expect(depths).toHaveLength(12);
    expect(Math.max(...depths)).toBeLessThanOrEqual(2);
  });
});

describe("the counts", () => {
  const report = (counts: object) => {
    const file = join(directory, "report.json");
    const none = { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0 };
    writeFileSync(file, JSON.stringify({ ...none, ...counts }));
    return file;
  };

  test("are those of the tests, a test still to be written counting as skipped", () => {
    const file = report({ numPassedTests: 5, numFailedTests: 2, numPendingTests: 1, numTodoTests: 1 });

    expect(countTests(file, 1)).toEqual({ passed: 5, failed: 2, skipped: 2 });
  });

  test("hold a failure when vitest failed without a failed test", () => {
    expect(countTests(report({ numPassedTests: 5 }), 1)).toEqual({ passed: 5, failed: 1, skipped: 0 });
    expect(countTests(report({ numPassedTests: 5 }), null)).toEqual({ passed: 5, failed: 1, skipped: 0 });
  });

  test("hold a failure when no test ran, or no report was written", () => {
    expect(countTests(report({ numPendingTests: 3 }), 0)).toEqual({ passed: 0, failed: 1, skipped: 3 });
    expect(countTests(join(directory, "absent.json"), 0)).toEqual({ passed: 0, failed: 1, skipped: 0 });
  });

  test("are one line that programs can read", () => {
    const sum = add({ passed: 6, failed: 0, skipped: 0 }, { passed: 40, failed: 1, skipped: 2 });

    expect(countsLine(sum)).toBe("46 passed, 1 failed, 2 skipped");
  });
});

describe("tests that lack a program", () => {
  const nginx = "nginx: apt-get install nginx";
  const result = (title: string, ancestorTitles: readonly string[], meta: object) => ({ title, ancestorTitles, meta });
  const assertionResults = [
    result("accepts the sample", ["nginx"], { missing: [nginx] }),
    result("terminates TLS", ["nginx", "with TLS"], { missing: [nginx] }),
    result("needs two", [], { missing: [nginx, "zsh: apt-get install zsh"] }),
    result("needs nothing", [], {}),
  ];
  const missing = () => {
    const file = join(directory, "report.json");
    const testResults = [{ name: join(directory, "test/proxies.test.ts"), assertionResults }];
    writeFileSync(file, JSON.stringify({ testResults }));
    return readMissing(file, directory);
  };

  test("are named, with what installs it", () => {
    expect(describeMissing(missing())).toBe(
      `Not run, because this machine lacks something:
  nginx: apt-get install nginx
    test/proxies.test.ts: nginx (2 tests)
    test/proxies.test.ts: needs two
  zsh: apt-get install zsh
    test/proxies.test.ts: needs two
`,
    );
    expect(describeMissing({ count: 0, tests: new Map() })).toBe("");
  });

  test("fail, if their tier was asked for", () => {
    expect(failMissing({ passed: 1, failed: 0, skipped: 3 }, missing())).toEqual({ passed: 1, failed: 3, skipped: 0 });
    const none = readMissing(join(directory, "absent.json"), directory);
    expect(failMissing({ passed: 1, failed: 0, skipped: 2 }, none)).toEqual({ passed: 1, failed: 0, skipped: 2 });
  });
});

test("an old Node gets one clear line", () => {
  const text = readFileSync(join(import.meta.dirname, "require-node.js"), "utf8");
  const older = text.replaceAll("process.versions.node", '"20.19.0"');
  expect(older).not.toBe(text);

  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", older], { encoding: "utf8" });

  expect(status).toBe(1);
  expect(stderr).toMatch(/^Paybell's own commands need Node 26 and found 20\.19\.0: run "npm ci".*\n$/);
});
