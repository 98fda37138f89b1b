import type { Delivery } from "../../packages/server/src/delivery/store.ts";
import type { SimulationContext } from "../context.ts";
import { deliveryOf, type SimulatedNotification } from "../database/notification.ts";
import type { Chains } from "../outside/chains.ts";
import type { Thread } from "./thread.ts";
import type { WorkerThread } from "./worker-thread.ts";

/** Rows that are handed to the own worker with their content. */
const creditMax = 8;

/** The part of a process that runs commands: each makes notifications durable, and then hints at them. */
export class Producer {
  readonly #context: SimulationContext;
  readonly #chains: Chains;
  readonly #thread: Thread;
  readonly #worker: () => WorkerThread | undefined;

  constructor(context: SimulationContext, chains: Chains, thread: Thread, worker: () => WorkerThread | undefined) {
    this.#context = context;
    this.#chains = chains;
    this.#thread = thread;
    this.#worker = worker;
  }

  /** Begins a transaction now and then. */
  start(): void {
    const { world, plan, loadFactor } = this.#context;
    const perSecond = (plan.load * Math.max(loadFactor, 0.001)) / plan.services;
    const waitMs = Math.min(2_000, (-Math.log(1 - world.random.next()) / perSecond) * 1_000);
    this.#thread.timers.after(waitMs, () => {
      if (this.#context.loadFactor > 0 && waitMs < 2_000) this.#begin();
      this.start();
    });
  }

  #begin(): void {
    const { world, database } = this.#context;
    const made = this.#chains.begin(database.nowUs());
    // Most take a moment; a few stay open while others are committed.
    const begunMs = this.#thread.clock.monotonicMs();
    const openMs = world.random.chance(0.03) ? world.random.between(5, 3_000) : world.random.between(0.3, 3);
    world.agenda.after(openMs, () => this.#commit(made, begunMs));
  }

  #commit(made: readonly SimulatedNotification[], begunMs: number): void {
    const { world, database } = this.#context;
    const { isCommitted, isKnown } = database.fateOfCommit();
    // A process that died before it sent the COMMIT takes its transaction along.
    const isSent = this.#thread.isAlive || world.random.chance(0.5);
    if (isCommitted && isSent) this.#chains.committed(made);
    else this.#chains.rolledBack(made);
    if (!isCommitted || !isSent || !isKnown) return;
    // As they were committed: a stalled main thread sends the hints late, whatever happened since.
    const rows = made.map((one) => deliveryOf(one));
    world.agenda.after(database.tookMs(0.2), () => this.#thread.enter(() => this.#hint(made, rows, begunMs)));
  }

  #hint(made: readonly SimulatedNotification[], rows: readonly Delivery[], begunMs: number): void {
    const { hints, checks } = this.#context;
    const worker = this.#worker();
    const isOwn = ({ partnerId }: Delivery) => worker?.worker.ownership.epochOf(partnerId) !== undefined;
    const own = worker === undefined ? [] : rows.filter(isOwn).slice(0, creditMax);
    if (worker !== undefined && own.length > 0) {
      hints.rows(worker, own, begunMs, () => {
        // A late hint may be of a round that is over.
        for (const [at, one] of made.entries()) {
          const row = rows[at];
          if (row === undefined || !own.includes(row)) continue;
          if (one.state === "pending" && one.round === row.round) checks.told(worker, one);
        }
      });
    }
    const others = rows.filter((one) => !own.includes(one));
    hints.keys(others.map(({ partnerId, queue, scheduleStartMs: sinceMs }) => ({ partnerId, queue, sinceMs })));
  }
}
