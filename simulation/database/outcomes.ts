import type { DeliveryOutcome, Recorded } from "../../packages/server/src/delivery/store.ts";
import type { EventLoop } from "../service/event-loop.ts";
import type { World } from "../world.ts";
import { type SimulatedDatabase, SimulatedFailure } from "./database.ts";
import type { Line } from "./line.ts";

interface Waiting {
  readonly outcome: DeliveryOutcome;
  readonly resolve: (recorded: Recorded) => void;
  readonly reject: (error: Error) => void;
}

const batchMax = 32;
const againMs = 250;

/** Outcomes share commits. A commit is repeated until its fate is known. */
export class OutcomeCommits {
  readonly #world: World;
  readonly #database: SimulatedDatabase;
  readonly #loop: EventLoop;
  readonly #line: Line;
  readonly #apply: (outcome: DeliveryOutcome) => Recorded;
  #waiting: Waiting[] = [];
  #isCommitting = false;
  #unwritten = 0;
  /** The chance of an outcome that cannot be stored. */
  unstorableChance = 0;
  /** Each commit takes so much longer. */
  slowMs = 0;

  constructor(
    world: World,
    database: SimulatedDatabase,
    loop: EventLoop,
    line: Line,
    apply: (outcome: DeliveryOutcome) => Recorded,
  ) {
    this.#world = world;
    this.#database = database;
    this.#loop = loop;
    this.#line = line;
    this.#apply = apply;
  }

  /** The number of outcomes whose fate the worker does not know yet. */
  get unwritten(): number {
    return this.#unwritten;
  }

  record(outcome: DeliveryOutcome): Promise<Recorded> {
    return new Promise<Recorded>((resolve, reject) => {
      this.#waiting.push({ outcome, resolve, reject });
      this.#unwritten += 1;
      if (!this.#isCommitting) void this.#commitAll();
    });
  }

  async #commitAll(): Promise<void> {
    this.#isCommitting = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, batchMax);
      const answers = await this.#commit(batch.map(({ outcome }) => outcome));
      this.#unwritten -= batch.length;
      for (const [at, { resolve, reject }] of batch.entries()) {
        const answer = answers[at];
        if (answer === undefined) reject(new SimulatedFailure("no table takes it"));
        else resolve(answer);
      }
    }
    this.#isCommitting = false;
  }

  async #commit(outcomes: readonly DeliveryOutcome[]): Promise<readonly (Recorded | undefined)[]> {
    const { random } = this.#world;
    if (this.slowMs > 0) await new Promise<void>((resolve) => void this.#loop.timers.after(this.slowMs, resolve));
    const areStorable = outcomes.map(() => this.unstorableChance === 0 || !random.chance(this.unstorableChance));
    for (;;) {
      try {
        return await this.#database.write(this.#loop, this.#line, {
          name: "record",
          candidates: () => outcomes.map(({ id }) => id).sort(),
          apply: () => outcomes.map((outcome, at) => (areStorable[at] ? this.#apply(outcome) : undefined)),
        });
      } catch (error) {
        if (!(error instanceof SimulatedFailure)) throw error;
        await new Promise<void>((resolve) => void this.#loop.timers.after(againMs, resolve));
      }
    }
  }
}
