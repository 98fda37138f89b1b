import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { createMetrics } from "../../packages/server/src/metrics.ts";
import { ops, repository, run, tool } from "./tools.ts";

interface Rule {
  readonly alert: string;
  readonly expr: string;
}

const rulesFile = join(ops, "prometheus-rules.yml");
const rules: readonly Rule[] = parse(readFileSync(rulesFile, "utf8")).groups.flatMap(
  ({ rules }: { readonly rules: readonly Rule[] }) => rules,
);
const dashboards = readdirSync(join(ops, "grafana")).map((name) => [name] as const);

/** Every series of a metric: a histogram has three names. */
function knownSeries(): Map<string, ReadonlySet<string>> {
  const metrics = createMetrics();
  onTestFinished(() => metrics.close());
  const known = new Map<string, ReadonlySet<string>>();
  for (const metric of metrics.registry.getMetricsAsArray()) {
    const labels = new Set("labelNames" in metric ? (metric.labelNames as readonly string[]) : []);
    for (const end of String(metric.type) === "histogram" ? ["_bucket", "_sum", "_count"] : [""]) {
      known.set(metric.name + end, labels);
    }
  }
  return known;
}

/** The metrics that an expression names, with the labels it picks them by. */
function namedIn(expression: string): readonly { readonly name: string; readonly labels: readonly string[] }[] {
  return [...expression.matchAll(/\b((?:paybell|process)_[a-z0-9_]+)(?:\{([^}]*)\})?/g)].map(
    ([, name = "", by = ""]) => ({
      name,
      labels: [...by.matchAll(/(\w+)(?:=~|!=|=)/g)].map(([, label = ""]) => label).filter((label) => label !== "job"),
    }),
  );
}

function expectKnown(expressions: readonly string[]): void {
  const known = knownSeries();
  const named = expressions.flatMap(namedIn);
  expect(named.length).toBeGreaterThanOrEqual(expressions.length);
  for (const { name, labels } of named) {
    expect([...known.keys()]).toContain(name);
    for (const label of labels) expect([...(known.get(name) ?? [])], name).toContain(label);
  }
}

describe("the rules for Prometheus", () => {
  test("name metrics and labels that there are", () => {
    expectKnown(rules.map(({ expr }) => expr).filter((expr) => !expr.startsWith("up{")));
  });

  test("have each a section in the runbook, and each section is of an alert", () => {
    const runbook = readFileSync(join(repository, "docs/operator/runbook.md"), "utf8");
    const sections = [...runbook.matchAll(/^## (Paybell\w+)$/gm)].map(([, name]) => name);
    expect(sections).toEqual(rules.map(({ alert }) => alert));
  });

  test("are taken by Prometheus, and fire as they should", async ({ skip }) => {
    const promtool = tool("promtool");
    if (promtool === undefined) return skip("promtool is not installed");
    await run(promtool, ["check", "rules", rulesFile]);
    await run(promtool, ["test", "rules", join(import.meta.dirname, "prometheus-rules.test.yml")]);
    const folder = mkdtempSync(join(tmpdir(), "paybell-rules-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const broken = join(folder, "broken.yml");
    writeFileSync(broken, readFileSync(rulesFile, "utf8").replace("increase(", "increased("));
    await expect(run(promtool, ["check", "rules", broken])).rejects.toThrow();
  });
});

describe("the dashboards for Grafana", () => {
  test.each(dashboards)("%s names metrics and labels that there are, by the data source that is set up", (name) => {
    const { panels, templating, uid } = JSON.parse(readFileSync(join(ops, "grafana", name), "utf8"));
    expectKnown(panels.flatMap(({ targets }: { targets: { expr: string }[] }) => targets.map(({ expr }) => expr)));
    const variables = templating.list as { name: string; query: string }[];
    for (const { query } of variables) expectKnown([query.replace(/^label_values\(([^,]+),.*$/, "$1")]);
    const { datasources } = parse(readFileSync(join(ops, "compose/grafana.yml"), "utf8"));
    for (const { datasource } of panels) expect(datasource.uid).toBe(datasources[0].uid);
    expect(uid).toBe(`paybell-${name.replace(".json", "")}`);
  });
});
