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

/** The acquirer that `serve` was told to use, and what /readyz says of it. */
export function acquirerOf(config: Config): { readonly acquirer: SimulatedAcquirer | null; readonly name: string } {
  if (config.acquirer === null) return { acquirer: null, name: "none: commands are refused, reports are taken" };
  const outage = config.simulatorOutage === "none" ? "" : ` (outage: ${config.simulatorOutage})`;
  return { acquirer: simulator(config), name: `simulator${outage}: no card is charged` };
}
