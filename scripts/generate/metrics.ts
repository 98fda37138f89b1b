import { createMetrics } from "../../packages/server/src/metrics.ts";
import { code, type GeneratedFile, markdown } from "./document.ts";
import { type Section, sectionTables } from "./sections.ts";

const sections: readonly Section[] = [
  ["Notifications", /^paybell_(notifications|parked|attempt|attempts|delivery|oldest)_/],
  ["Notifications by partner", /^paybell_partner_/],
  ["Delivery", /_(slots|queued|bytes_in_flight|outcomes|shards)/],
  ["Commands, acquirers, alerts", /_(commands?|acquirer|late_answers|reversals|alerts)_/],
  ["Completions from a switch", /_(reports|intake|settlements)_/],
  ["Database", /_(group_commit|database|lease|ledger|partitions)_/],
  ["HTTP", /_(http|pulls|callers|requests)_/],
  ["Process", /^process_|_(event_loop|loop|trace)_/],
];

/** Everything that /metrics shows. */
export async function metricsReference(): Promise<GeneratedFile> {
  const metrics = createMetrics();
  const all = metrics.registry.getMetricsAsArray();
  metrics.close();
  return {
    path: "docs/reference/metrics.md",
    text: markdown(
      "Metrics",
      "`GET /metrics` shows these in the Prometheus text format. A metric describes the instance that answers, " +
        "unless its meaning says otherwise. A failed attempt's `reason` is one of " +
        "[these](../operator/deliveries.md#why-an-attempt-failed).",
      ...sectionTables(all, sections, {
        nameOf: ({ name }) => name,
        columns: ["Name", "Type", "Labels", "Meaning"],
        rowOf: (metric) => {
          const labels =
            "labelNames" in metric && Array.isArray(metric.labelNames) ? metric.labelNames.map(String) : [];
          return [code(metric.name), String(metric.type), labels.map(code).join(", "), metric.help];
        },
      }),
    ),
  };
}
