import { SimulatedAcquirer } from "../acquirer/simulator/simulator.ts";
import type { Config } from "../config.ts";

/** The simulated acquirer as configured. It answers commands while there is no link to a host. */
export function simulator({
  simulatorLatencyMs: latencyMs,
  simulatorLateByMs: lateByMs,
  simulatorOutage: outage,
}: Pick<Config, "simulatorLatencyMs" | "simulatorLateByMs" | "simulatorOutage">): SimulatedAcquirer {
  const acquirer = new SimulatedAcquirer({ latencyMs, lateByMs });
  if (outage !== "none") acquirer.outage(outage);
  return acquirer;
}

/** Its name in /readyz. */
export function simulatorName({ simulatorOutage }: Pick<Config, "simulatorOutage">): string {
  const outage = simulatorOutage === "none" ? "" : ` (outage: ${simulatorOutage})`;
  return `simulator${outage}: no card is charged`;
}
