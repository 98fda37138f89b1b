import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { alertKinds, alertTitles } from "../../packages/server/src/alerts/kinds.ts";
import { createMetrics } from "../../packages/server/src/telemetry/metrics.ts";
import { startTestService } from "../support/service.ts";
import { ops, repository } from "./files.ts";

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly runbook_url: string };
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

/** The metrics that an expression names, with the labels that it selects by. */
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
  test("name existing metrics and labels", () => {
    expectKnown(rules.map(({ expr }) => expr).filter((expr) => !expr.startsWith("up{")));
  });

  test("have each a section in the runbook, with severity, when it is over and when to escalate, and no other has one", () => {
    const runbook = readFileSync(join(repository, "docs/operator/runbook.md"), "utf8");
    const sections = [...runbook.matchAll(/^## (Paybell\w+)\n\n\*\*(Page|Ticket)\.\*\* ([\s\S]*?)(?=\n## )/gm)];
    expect(sections.map(([, alert, severity]) => [alert, severity?.toLowerCase()])).toEqual(
      rules.map(({ alert, labels }) => [alert, labels.severity]),
    );
    for (const [, alert, , text] of sections) {
      expect(text, alert).toMatch(/\*\*Over\*\*:\s.*\*\*Escalate\*\*\s/s);
    }
    for (const { alert, annotations } of rules) expect(annotations.runbook_url).toMatch(`#${alert.toLowerCase()}`);
  });

  test("stand in one catalogue with the kinds of events that the service sends, and their severity", () => {
    const catalogue = readFileSync(join(repository, "docs/operator/runbook.md"), "utf8");
    const rows = [...catalogue.matchAll(/^\| `(\w+)` \| (page|ticket|info) \|/gm)];
    const sent = Object.entries(alertTitles).flatMap(([severity, titles]) =>
      Object.keys(titles).map((kind) => `${kind} ${severity}`),
    );
    expect(rows.map(([, kind, severity]) => `${kind} ${severity}`).toSorted()).toEqual(sent.toSorted());
  });

  test("name each event of money in doubt", () => {
    const expr = rules.find(({ alert }) => alert === "PaybellMoneyInDoubt")?.expr ?? "";
    const kinds = /kind=~"([^"]+)"/.exec(expr)?.[1]?.split("|") ?? [];
    expect(kinds.toSorted()).toEqual(
      alertKinds.filter((kind) => /^(reversal|settlement|upload)_/.test(kind)).toSorted(),
    );
  });

  test("count increases of series that exist before their first event", async () => {
    const service = await startTestService();
    onTestFinished(() => service.stop());
    const { text } = await service.operator("GET", "/metrics");
    const counted = rules.flatMap(({ expr }) => [...expr.matchAll(/increase\((\w+)\{(\w+)=~?"([^"]+)"\}/g)]);
    const series = counted.flatMap(([, name, label, values = ""]) =>
      values.split("|").map((value) => [name, `${label}="${value}"`] as const),
    );
    series.push(["paybell_ledger_rows_dropped_total", 'table="reversals"']);
    expect(series.length).toBeGreaterThan(8);
    const zeros = text.split("\n").filter((line) => line.endsWith(" 0"));
    for (const [name, label] of series) {
      const found = zeros.filter((line) => line.startsWith(`${name}{`) && line.includes(label));
      expect(found, `${name} ${label}`).not.toEqual([]);
    }
  });
});

describe("the dashboards for Grafana", () => {
  test.each(dashboards)("%s names existing metrics and labels, and the configured data source", (name) => {
    const { panels, templating, uid } = JSON.parse(readFileSync(join(ops, "grafana", name), "utf8"));
    expectKnown(panels.flatMap(({ targets }: { targets: { expr: string }[] }) => targets.map(({ expr }) => expr)));
    const variables = templating.list as { name: string; query: string }[];
    for (const { query } of variables) expectKnown([query.replace(/^label_values\(([^,]+),.*$/, "$1")]);
    const { datasources } = parse(readFileSync(join(ops, "compose/grafana.yml"), "utf8"));
    for (const { datasource } of panels) expect(datasource.uid).toBe(datasources[0].uid);
    expect(uid).toBe(`paybell-${name.replace(".json", "")}`);
  });
});
