import type { Deployment } from "./deployment.ts";
import type { SeededRandom } from "./random.ts";

/** The requirements of a fault on its deployment. */
export type Needs = "one instance" | "several instances" | "a standby" | "a small disk" | "Citus" | "nothing";

/** Deliveries that may be repeated because of it: those that these instances had in flight, and had not recorded. */
export interface FaultEffect {
  readonly instances: number;
  /** Instances were only stopped in order: no command may be declined because of it. */
  readonly isPlanned?: boolean;
  /** The slower Sales of a neighbour, where one partner was the fault. */
  readonly slowdown?: Slowdown;
}

/** The 99th percentile of a partner's Sales before and during a fault. */
export interface Slowdown {
  readonly beforeMs: number;
  readonly duringMs: number;
  readonly sales: number;
}

export interface FaultContext {
  readonly stage: Deployment;
  readonly random: SeededRandom;
  /** The fault is over: from now on partners are waited for. Once, before `happen` resolves. */
  over(): void;
  /** Waits while it lasts; a short run uses the minimum. */
  last(leastMs: number, mostMs: number): Promise<void>;
}

/** A temporary fault of a stage under load. */
export interface InjectedFault {
  readonly name: string;
  readonly needs: Needs;
  /** Belongs to the short form. It leaves out kills, which test/faults has as tests of their own. */
  readonly isQuick: boolean;
  happen(context: FaultContext): Promise<FaultEffect>;
}
