import type { Config } from "../config.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { Tracing } from "../tracing/tracing.ts";
import { type CheckFinding, ok, warning } from "./check-finding.ts";
import { ownVersion } from "./own-version.ts";

/** Traces by the settings; undefined if there are none. Then none of their code is loaded. */
export async function openTraces(config: Config, log: Log, metrics: Metrics): Promise<Tracing | undefined> {
  if (config.tracesEndpoint === null) return undefined;
  const { openTracing } = await import("../tracing/tracing.ts");
  return openTracing({ config, version: ownVersion(), log, metrics });
}

/** Whether the collector of the settings accepts an export. */
export async function tracingFindings(config: Config): Promise<CheckFinding[]> {
  if (config.tracesEndpoint === null) return [];
  const what = "traces";
  const { probeCollector } = await import("../tracing/tracing.ts");
  try {
    await probeCollector(config);
    return [ok(what, "the collector accepts them")];
  } catch (failure) {
    const remedy = "Check OTEL_EXPORTER_OTLP_ENDPOINT (OTLP over HTTP, mostly port 4318) and its headers.";
    return [warning(what, `the collector does not accept them: ${messageOf(failure)}`, remedy)];
  }
}
