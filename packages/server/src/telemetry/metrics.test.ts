import { afterEach, describe, expect, test } from "vitest";
import { createMetrics, loopDelaySeconds, type Metrics } from "./metrics.ts";

const made: Metrics[] = [];
afterEach(() => {
  for (const metrics of made.splice(0)) metrics.close();
});

function metricsOfATest(): Metrics {
  const metrics = createMetrics();
  made.push(metrics);
  return metrics;
}

describe("createMetrics", () => {
  test("two services in one process count apart", async () => {
    const [one, other] = [metricsOfATest(), metricsOfATest()];
    one.commands.inc({ command: "SALE", outcome: "SUCCESS" });
    expect(await one.registry.metrics()).toContain('paybell_commands_total{command="SALE",outcome="SUCCESS"} 1');
    expect(await other.registry.metrics()).not.toContain('command="SALE"');
  });

  test("every metric has a help text, a unit or a count in its name, and all but the process's own our prefix", () => {
    for (const { name, help } of metricsOfATest().registry.getMetricsAsArray()) {
      expect(help, name).toMatch(/^[A-Z].{8,}[^.]$/);
      expect(name).toMatch(/^(paybell|process)_[a-z0-9_]+$/);
      const units = /_(total|seconds|bytes|rows|pending|parked|notifications|messages)$/;
      const states = /_(unowned|in_use|in_flight|ahead|waiting|connected)$/;
      expect(units.test(name) || states.test(name), name).toBe(true);
    }
  });

  test("the event loop and the process are read when asked for", async () => {
    const text = await metricsOfATest().registry.metrics();
    expect(text).toMatch(/^process_resident_memory_bytes [1-9][0-9]+$/m);
    expect(text).toMatch(/^# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total [0-9.]+$/m);
    expect(text).toMatch(/^paybell_event_loop_delay_p99_seconds [0-9.e-]+$/m);
  });

  test("an idle event loop has no delay, and the wait between two samples is none", () => {
    expect(loopDelaySeconds(Number.NaN)).toBe(0);
    expect(loopDelaySeconds(249_900_000)).toBe(0);
    expect(loopDelaySeconds(300_000_000)).toBeCloseTo(0.05);
  });
});
