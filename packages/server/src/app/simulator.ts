import { SimulatedAcquirer } from "../acquirer/simulator/simulator.ts";
import type { Config } from "../config.ts";

/** The simulated acquirer as it is configured: commands are answered by it until there is a link to a host. */
export function simulator({
  simulatorLatencyMs: latencyMs,
  simulatorLateByMs: lateByMs,
  simulatorOutage: outage,
}: Pick<Config, "simulatorLatencyMs" | "simulatorLateByMs" | "simulatorOutage">): SimulatedAcquirer {
  const acquirer = new SimulatedAcquirer({ latencyMs, lateByMs });
  if (outage !== "none") acquirer.outage(outage);
  return acquirer;
}

/** What /readyz says of it. */
export function simulatorName({ simulatorOutage }: Pick<Config, "simulatorOutage">): string {
  const outage = simulatorOutage === "none" ? "" : ` (outage: ${simulatorOutage})`;
  return `simulator${outage}: no card is charged`;
}
