import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ops, run } from "../ops/files.ts";
import { needs, pathOf } from "../support/programs.ts";
import { promtoolFile, ruleTests } from "./prometheus-rules.ts";

const rules = join(ops, "prometheus-rules.yml");
const promtool = (...args: readonly string[]) => run(pathOf("promtool"), args);

/** A folder with a copy of both files, whose configuration names the rules there, as in the container. */
function configured(sample: string, change: (configuration: string) => string = (same) => same): string {
  const folder = mkdtempSync(join(tmpdir(), "paybell-prometheus-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(rules, join(folder, "rules.yml"));
  const configuration = readFileSync(join(ops, sample), "utf8");
  const file = join(folder, "prometheus.yml");
  writeFileSync(file, change(configuration.replace("/etc/prometheus/rules.yml", join(folder, "rules.yml"))));
  return file;
}

describe("Prometheus", needs("promtool"), () => {
  const alerts = [...readFileSync(rules, "utf8").matchAll(/- alert: (\w+)/g)].map(([, name = ""]) => name);
  const tests = ruleTests(alerts);

  test("accepts the rules, and they fire as they should", async () => {
    const folder = mkdtempSync(join(tmpdir(), "paybell-prometheus-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "tests.yml");
    writeFileSync(file, promtoolFile(rules, tests));
    await promtool("check", "rules", rules);
    await promtool("test", "rules", file);
  });

  test("has for each rule a test in which it fires, beside the one in which all stay silent", () => {
    const fired = tests.flatMap(({ fires = [] }) => fires.map(([when]) => when.split(" ")[1]));
    expect([...new Set(fired)].sort()).toEqual([...alerts].sort());
  });

  test.each(["compose", "systemd"])("accepts the configuration for %s, with the rules", async (folder) => {
    const { stdout } = await promtool("check", "config", configured(`${folder}/prometheus.yml`));
    expect(stdout).toMatch(/SUCCESS: \d+ rules found/);
  });

  test("refuses an unknown function in a rule, and an unknown field of the configuration", async () => {
    const file = configured("systemd/prometheus.yml", (text) => text.replace("scrape_configs", "scrape_config"));
    await expect(promtool("check", "config", file)).rejects.toMatchObject({
      stderr: expect.stringContaining("scrape_config not found"),
    });
    writeFileSync(file, readFileSync(rules, "utf8").replace("increase(", "increased("));
    await expect(promtool("check", "rules", file)).rejects.toMatchObject({
      stderr: expect.stringContaining("increased"),
    });
  });
});
