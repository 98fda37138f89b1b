import { Lease } from "../../packages/server/src/leases/lease.ts";
import type { SimulationContext } from "../context.ts";
import { SimulatedFailure } from "../database/database.ts";
import type { SimulatedLeases } from "../database/leases.ts";
import { Line } from "../database/line.ts";
import type { Chains } from "../outside/chains.ts";
import { SimulatedMachine } from "./machine.ts";
import { Producer } from "./producer.ts";
import { Thread } from "./thread.ts";
import { WorkerThread } from "./worker-thread.ts";

const restartAfterMs = 100;
const refusedRestartAfterMs = 1_000;

/** One process of the service: it runs commands, looks for the dead, and supervises the thread that delivers. */
export class SimulatedProcess {
  readonly #context: SimulationContext;
  readonly #chains: Chains;
  readonly #name: string;
  readonly line = new Line();
  readonly beatLine = new Line();
  /** The worker's thread has connections of its own. */
  readonly workerLine = new Line();
  #lives = 0;
  #machine: SimulatedMachine | undefined;
  #main: Thread | undefined;
  #leases: SimulatedLeases | undefined;
  #lease: Lease | undefined;
  #worker: WorkerThread | undefined;
  #isStopping = false;

  constructor(context: SimulationContext, chains: Chains, name: string) {
    this.#context = context;
    this.#chains = chains;
    this.#name = name;
  }

  get machine(): SimulatedMachine | undefined {
    return this.#machine;
  }

  get worker(): WorkerThread | undefined {
    return this.#worker;
  }

  get isRunning(): boolean {
    return this.#machine !== undefined;
  }

  get isStopping(): boolean {
    return this.isRunning && this.#isStopping;
  }

  start(): void {
    if (this.isRunning) return;
    const { world, database, tables, variation } = this.#context;
    this.#lives += 1;
    this.#isStopping = false;
    world.note(this.#name, "process starts");
    this.#machine = new SimulatedMachine(world, this.#context.plan.drift);
    const main = new Thread(world, this.#machine, `${this.#name}.${this.#lives}`, this.#machine.lateness);
    this.#main = main;
    this.#leases = new variation.Leases(database, tables, main, this.line);
    const onTrouble = (error: unknown) => {
      if (!(error instanceof SimulatedFailure)) world.broke(error);
    };
    this.#lease = new Lease({
      kind: "api",
      store: this.#leases,
      clock: main.clock,
      timers: main.timers,
      onReaped: (ids) => {
        world.note(main.name, "reaped", ids.join(" "));
        this.#worker?.worker.tick();
        this.#context.hints.shardsGiven();
      },
      onTrouble,
    });
    this.#holdLease(main, this.#lease, onTrouble);
    new Producer(this.#context, this.#chains, main, () => this.#worker).start();
    this.#startWorker(main);
  }

  /** kill -9. */
  kill(): void {
    this.#context.world.note(this.#name, "process is killed");
    this.#worker?.end();
    this.#main?.end();
    this.#forget();
  }

  /** A clean stop. @param drainMs the time that attempts and their outcomes have */
  async stop(drainMs: number): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined || this.#isStopping) return;
    this.#isStopping = true;
    this.#context.world.note(this.#name, "process stops");
    await worker.stop(drainMs);
    await this.#lease?.stop();
    if (this.#worker !== worker) return;
    this.#main?.end();
    this.#forget();
  }

  /** The thread fails: it runs on for a moment, and then it is gone. */
  threadFails(lastsMs: number): void {
    const { world, variation } = this.#context;
    const worker = this.#worker;
    const main = this.#main;
    if (worker === undefined || main === undefined) return;
    world.note(worker.name, "emits error, and exits in", lastsMs);
    if (variation.supervisorActsOn === "error") main.enter(() => this.#release(worker));
    world.agenda.after(lastsMs, () => {
      if (!worker.thread.isAlive) return;
      worker.end();
      main.enter(() => this.#exited(main, worker, restartAfterMs));
    });
  }

  #holdLease(main: Thread, lease: Lease, onTrouble: (error: unknown) => void): void {
    lease.start().catch((error: unknown) => {
      onTrouble(error);
      main.timers.after(refusedRestartAfterMs, () => this.#holdLease(main, lease, onTrouble));
    });
  }

  #startWorker(main: Thread): void {
    const machine = this.#machine;
    if (machine === undefined || this.#isStopping) return;
    this.#lives += 1;
    const name = `${this.#name}.${this.#lives}`;
    const worker = new WorkerThread(this.#context, { name, machine, line: this.workerLine, beatLine: this.beatLine });
    this.#worker = worker;
    worker.start().catch((error: unknown) => {
      if (!(error instanceof SimulatedFailure)) return this.#context.world.broke(error);
      worker.end();
      main.enter(() => this.#exited(main, worker, refusedRestartAfterMs));
    });
  }

  /** Only its exit proves that a thread sends no more. */
  #exited(main: Thread, worker: WorkerThread, againMs: number): void {
    if (this.#worker !== worker || this.#isStopping) return;
    this.#worker = undefined;
    this.#release(worker);
    main.timers.after(againMs, () => this.#startWorker(main));
  }

  #release({ knownLease }: WorkerThread): void {
    if (knownLease === undefined) return;
    // A lease that cannot be deleted now is found dead later.
    this.#leases?.remove(knownLease).catch(() => undefined);
  }

  #forget(): void {
    this.#machine = undefined;
    this.#main = undefined;
    this.#worker = undefined;
    this.line.heal();
    this.beatLine.heal();
    this.workerLine.heal();
  }
}
