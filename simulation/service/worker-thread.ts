import type { CircuitStore } from "../../packages/server/src/delivery/circuit-store.ts";
import type { Hint } from "../../packages/server/src/delivery/store.ts";
import { DeliveryWorker } from "../../packages/server/src/delivery/worker.ts";
import type { LeaseId } from "../../packages/server/src/ids.ts";
import { Lease, type LeaseHolder } from "../../packages/server/src/leases/lease.ts";
import type { SimulationContext } from "../context.ts";
import { SimulatedCircuits } from "../database/circuits.ts";
import { SimulatedFailure } from "../database/database.ts";
import { SimulatedDeliveries } from "../database/deliveries.ts";
import { circuitsOf, deliveriesOf } from "../database/homes.ts";
import { Line } from "../database/line.ts";
import { OutcomeCommits } from "../database/outcomes.ts";
import { SimulatedPartners } from "../outside/partner-source.ts";
import { SimulatedAttempts } from "./attempt.ts";
import type { SimulatedMachine } from "./machine.ts";
import { Thread } from "./thread.ts";

export interface WorkerThreadOptions {
  readonly name: string;
  readonly machine: SimulatedMachine;
  readonly line: Line;
  /** Beats have a connection of their own. */
  readonly beatLine: Line;
}

/** A delivery worker with its lease, as wired in a thread of the service. */
export class WorkerThread {
  readonly name: string;
  readonly thread: Thread;
  readonly partners: SimulatedPartners;
  readonly worker: DeliveryWorker;
  readonly lease: LeaseHolder;
  /** One for each home. */
  readonly outcomes: readonly OutcomeCommits[];
  readonly #context: SimulationContext;
  readonly #lease: Lease;
  /** The main thread's knowledge of its lease. */
  knownLease: LeaseId | undefined;
  #drainsUntilMs = Number.NEGATIVE_INFINITY;

  constructor(context: SimulationContext, { name, machine, line, beatLine }: WorkerThreadOptions) {
    const { world, database, tables, plan, variation, checks } = context;
    this.name = name;
    this.#context = context;
    const thread = new Thread(world, machine, name);
    this.thread = thread;
    const { clock, timers } = thread;
    this.#lease = new Lease({
      kind: "delivery",
      store: new variation.Leases(database, tables, thread, beatLine),
      clock,
      timers,
      onTrouble: (error) => this.#trouble("lease", error),
      isFit: () => this.worker.ownership.isFit,
      onLost: () => this.worker.leaseLost(),
      onHeld: (id) => {
        this.knownLease = id;
        world.note(name, "holds lease", id);
        this.worker.tick();
      },
    });
    this.lease = variation.holder(this.#lease, thread);
    const lines = context.homeLines.map((home) => new Line([line, home]));
    this.outcomes = lines.map((one) => new OutcomeCommits(world, database, thread, one, context.carryOut));
    const onLoaded = (loaded: Awaited<ReturnType<CircuitStore["load"]>>) => checks.circuitsLoaded(this, loaded);
    this.partners = new SimulatedPartners(database, tables, thread, line, (id) => this.worker.partnerChanged(id));
    const deliveries = this.outcomes.map(
      (outcomes, home) =>
        new SimulatedDeliveries({
          database,
          tables,
          thread,
          line: lines[home] ?? line,
          record: (outcome) => checks.recorded(this, outcome, outcomes.record(outcome)),
          onRead: (reads) => checks.readBegins(this, reads),
          onHeads: (shards) => checks.swept(this, shards),
        }),
    );
    const circuits = lines.map((one) => new SimulatedCircuits(database, tables, thread, one, onLoaded));
    this.worker = new DeliveryWorker({
      store: variation.deliveries(deliveriesOf(world, deliveries)),
      shards: new variation.Shards(database, tables, thread, line, {
        onReleases: (shards) => checks.releases(this, shards),
        onGiven: (given) => {
          world.note(name, "gave", given.join(" "));
          context.hints.shardsGiven();
        },
      }),
      circuits: circuitsOf(world, circuits),
      homes: plan.homes,
      lease: this.lease,
      partners: this.partners,
      attempt: new SimulatedAttempts(context, this).attempt,
      clock,
      timers,
      inNextTurn: (work) => void timers.after(0, work),
      random: world.random.next,
      slotsMax: plan.slotsMax,
      bytesInFlightMax: plan.bytesInFlightMax,
      attemptTimeoutMs: plan.attemptTimeoutMs,
      onTrouble: (message, error) => this.#trouble(message, error),
    });
  }

  /** Whether it stops, and still has time for attempts that have not ended. */
  get drains(): boolean {
    return this.thread.clock.monotonicMs() < this.#drainsUntilMs;
  }

  /** Rejects when no lease can be had. */
  async start(): Promise<void> {
    await this.#lease.start();
    this.#context.workers.add(this);
    this.worker.start();
  }

  wake(hints: readonly Hint[]): void {
    this.worker.wake(hints);
    for (const hint of hints) this.#context.checks.woken(this, hint);
  }

  /** It gives everything up, and ends. */
  async stop(drainMs: number): Promise<void> {
    this.#drainsUntilMs = this.thread.clock.monotonicMs() + drainMs;
    await this.worker.stop(drainMs);
    await this.#lease.stop();
    this.end();
  }

  /** Nothing runs in it from now on. */
  end(): void {
    this.#context.workers.delete(this);
    this.thread.end();
  }

  #trouble(message: string, error: unknown): void {
    const { world } = this.#context;
    if (error instanceof SimulatedFailure) world.note(this.name, message, error.message);
    else world.broke(error);
  }
}
