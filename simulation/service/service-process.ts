import type { SimulationContext } from "../context.ts";
import { SimulatedFailure } from "../database/database.ts";
import { Line } from "../database/line.ts";
import type { Chains } from "../outside/chains.ts";
import { Instance } from "./instance.ts";
import { Producer } from "./producer.ts";

const refusedRestartAfterMs = 1_000;

/** One process of the service, from one life to the next: it runs commands and delivers. */
export class SimulatedProcess {
  readonly #context: SimulationContext;
  readonly #chains: Chains;
  readonly #name: string;
  readonly line = new Line();
  readonly beatLine = new Line();
  #lives = 0;
  #instance: Instance | undefined;
  #isStopping = false;

  constructor(context: SimulationContext, chains: Chains, name: string) {
    this.#context = context;
    this.#chains = chains;
    this.#name = name;
  }

  /** Its present life. */
  get instance(): Instance | undefined {
    return this.#instance;
  }

  get isStopping(): boolean {
    return this.#instance !== undefined && this.#isStopping;
  }

  start(): void {
    if (this.#instance !== undefined) return;
    this.#lives += 1;
    this.#isStopping = false;
    const instance = new Instance(this.#context, `${this.#name}.${this.#lives}`, this);
    this.#context.world.note(instance.name, "process starts");
    this.#instance = instance;
    new Producer(this.#context, this.#chains, instance).start();
    instance.start().catch((error: unknown) => {
      if (!(error instanceof SimulatedFailure)) return this.#context.world.broke(error);
      if (this.#instance !== instance) return;
      this.kill();
      this.#context.world.agenda.after(refusedRestartAfterMs, () => this.start());
    });
  }

  /** kill -9, or an error that ends the process. */
  kill(): void {
    this.#context.world.note(this.#instance?.name, "process is killed");
    this.#instance?.end();
    this.#forget();
  }

  /** A clean stop. @param drainMs the time that attempts and their outcomes have */
  async stop(drainMs: number): Promise<void> {
    const instance = this.#instance;
    if (instance === undefined || this.#isStopping) return;
    this.#isStopping = true;
    this.#context.world.note(instance.name, "process stops");
    await instance.stop(drainMs);
    if (this.#instance === instance) this.#forget();
  }

  #forget(): void {
    this.#instance = undefined;
    this.line.heal();
    this.beatLine.heal();
  }
}
