import { createMetrics } from "../../packages/server/src/metrics.ts";
import { code, type GeneratedFile, markdown, table } from "./document.ts";

/** Everything that /metrics shows. */
export async function metricsReference(): Promise<GeneratedFile> {
  const metrics = createMetrics();
  const all = metrics.registry.getMetricsAsArray();
  const rows = all.map((metric) => {
    const labels = "labelNames" in metric && Array.isArray(metric.labelNames) ? metric.labelNames.map(String) : [];
    return [code(metric.name), String(metric.type), labels.map(code).join(", "), metric.help];
  });
  metrics.close();
  return {
    path: "docs/reference/metrics.md",
    text: markdown(
      "Metrics",
      "`GET /metrics`, in the Prometheus text format. Without a note, a metric describes the instance that answers.",
      table(["Name", "Type", "Labels", "Meaning"], rows),
    ),
  };
}
