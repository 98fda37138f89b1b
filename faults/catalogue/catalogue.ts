import type { InjectedFault } from "../fault.ts";
import { citusFaults } from "./citus.ts";
import { databaseFaults } from "./database.ts";
import { neighbourFaults } from "./neighbours.ts";
import { networkFaults } from "./network.ts";
import { partnerFaults } from "./partners.ts";
import { processFaults } from "./processes.ts";
import { upgradeFaults } from "./upgrade.ts";

/** Every fault that can be asked for by its name. */
export const catalogue: readonly InjectedFault[] = [
  ...processFaults,
  ...networkFaults,
  ...databaseFaults,
  ...citusFaults,
  ...partnerFaults,
  ...neighbourFaults,
  ...upgradeFaults,
];
