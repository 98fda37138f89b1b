import { createMetrics } from "../../packages/server/src/metrics.ts";
import { code, type GeneratedFile, type Section, sectionTables, withParts } from "./document.ts";

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
  const tables = sectionTables(all, sections, ["Name", "Type", "Labels", "Meaning"], (metric) => {
    const labels = "labelNames" in metric && Array.isArray(metric.labelNames) ? metric.labelNames.map(String) : [];
    return [code(metric.name), String(metric.type), labels.map(code).join(", "), metric.help];
  });
  return withParts("docs/reference/metrics.md", { metrics: tables });
}
