import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ops, run } from "../ops/files.ts";
import { needs, pathOf } from "../support/programs.ts";

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
  const tests = join(import.meta.dirname, "prometheus-rules.test.yml");

  test("accepts the rules, and they fire as they should", async () => {
    await promtool("check", "rules", rules);
    await promtool("test", "rules", tests);
  });

  test("has for each rule a test in which it fires, and one in which it stays silent", () => {
    const names = (text: string, pattern: RegExp) => [...new Set([...text.matchAll(pattern)].map(([, name]) => name))];
    const alerts = names(readFileSync(rules, "utf8"), /- alert: (\w+)/g).sort();
    const tested = readFileSync(tests, "utf8");
    expect(names(tested, /alertname: (\w+)\n\s+exp_alerts:/g).sort()).toEqual(alerts);
    expect(names(tested, /alertname: (\w+) \}/g).sort()).toEqual(alerts);
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
