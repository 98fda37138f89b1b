import type { Delivery } from "../../packages/server/src/delivery/delivery.ts";
import type { Hints } from "../../packages/server/src/delivery/hints.ts";
import type { SimulationContext } from "../context.ts";
import { deliveryOf, type SimulatedNotification } from "../database/notification.ts";
import type { Chains } from "../outside/chains.ts";
import type { Instance } from "./instance.ts";

/** A few answers to a COMMIT are later than outcomes are remembered. */
const veryLateMs = 25_000;
/** By the clock of its loop: what waits for a turn has it after 100 ms, which a timer may be late for. */
const turnWithinMs = 150;

/** The part of a process that runs commands: each makes notifications durable, and then passes them on. */
export class Producer {
  readonly #context: SimulationContext;
  readonly #chains: Chains;
  readonly #instance: Instance;
  readonly #notifier: Pick<Hints, "offer">;

  constructor(context: SimulationContext, chains: Chains, instance: Instance) {
    this.#context = context;
    this.#chains = chains;
    this.#instance = instance;
    this.#notifier = context.variation.notifier(instance);
  }

  /** Begins a transaction now and then. */
  start(): void {
    const { world, plan, loadFactor } = this.#context;
    const perSecond = (plan.load * Math.max(loadFactor, 0.001)) / plan.services;
    const waitMs = Math.min(2_000, (-Math.log(1 - world.random.next()) / perSecond) * 1_000);
    this.#instance.loop.timers.after(waitMs, () => {
      if (this.#context.loadFactor > 0 && waitMs < 2_000) void this.#takeTurn().then(() => this.#begin());
      this.start();
    });
  }

  /** Invariant 18. */
  async #takeTurn(): Promise<void> {
    const { backpressure, loop, name } = this.#instance;
    const turn = backpressure.waitForTurn();
    if (turn === undefined) return;
    const waits = () => this.#context.world.violated(18, `${name} has waited ${turnWithinMs} ms for a turn of intake`);
    const cancel = loop.timers.after(turnWithinMs, waits);
    await turn;
    cancel();
  }

  #begin(): void {
    const { world, database } = this.#context;
    const made = this.#chains.begin(database.nowUs());
    // Most take a moment; a few stay open while others are committed.
    const begunMs = this.#instance.loop.clock.monotonicMs();
    const openMs = world.random.chance(0.03) ? world.random.between(5, 3_000) : world.random.between(0.3, 3);
    world.agenda.after(openMs, () => this.#commit(made, begunMs));
  }

  #commit(made: readonly SimulatedNotification[], begunMs: number): void {
    const { world, database } = this.#context;
    const { isCommitted, isKnown } = database.fateOfCommit();
    // A process that died before it sent the COMMIT takes its transaction along.
    const isSent = this.#instance.loop.isAlive || world.random.chance(0.5);
    if (isCommitted && isSent) this.#chains.committed(made);
    else this.#chains.rolledBack(made);
    if (!isCommitted || !isSent || !isKnown) return;
    // As they were committed: a stalled process passes them on late, whatever happened since.
    const rows = made.map((one) => deliveryOf(one));
    world.agenda.after(this.#answeredAfterMs(), () =>
      this.#instance.loop.enter(() => {
        for (const row of rows) this.#offer(row, begunMs);
      }),
    );
  }

  /** Invariant 19. */
  #offer(row: Delivery, begunMs: number): void {
    try {
      this.#notifier.offer(row, begunMs);
    } catch (error) {
      this.#context.world.violated(19, `an error of delivery ends a command, which is committed: ${error}`);
    }
  }

  #answeredAfterMs(): number {
    const { world, database, notifications } = this.#context;
    const { random } = world;
    const isLate = notifications.lateChance > 0 && random.chance(notifications.lateChance);
    return isLate ? random.between(1, random.chance(0.2) ? veryLateMs : 400) : database.tookMs(0.2);
  }
}
