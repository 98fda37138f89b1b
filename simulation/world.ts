import TinyQueue from "tinyqueue";
import { type SeededRandom, seeded } from "../faults/random.ts";

type Detail = string | number | boolean | undefined;

/** A violation that was found. */
export interface Violation {
  /** The number in docs/internals/simulation.md; 0: the code threw an error. */
  readonly invariant: number;
  readonly text: string;
  readonly step: number;
  readonly atMs: number;
}

const traceLength = 20_000;

/** Time, randomness and the event log, which all parts of the simulation share. */
export class World {
  readonly agenda = new Agenda();
  readonly random: SeededRandom;
  readonly #trace: (readonly Detail[])[] = [];
  steps = 0;
  violation: Violation | undefined;

  constructor(seed: number) {
    this.random = seeded(seed);
  }

  get nowMs(): number {
    return this.agenda.nowMs;
  }

  /** Runs one event. False: no event is left. */
  step(): boolean {
    let planned = this.agenda.next();
    while (planned !== undefined && planned.run === undefined) planned = this.agenda.next();
    if (planned?.run === undefined) return false;
    this.steps += 1;
    try {
      planned.run();
    } catch (error) {
      this.broke(error);
    }
    return true;
  }

  /** Records an event. It is cheap, because the text is made only on request. */
  note(...details: readonly Detail[]): void {
    const line = [this.steps, Math.round(this.nowMs * 1_000) / 1_000, ...details];
    this.#trace.push(line);
    if (this.#trace.length > 2 * traceLength) this.#trace.splice(0, traceLength);
  }

  /** The last recorded events. */
  tail(count: number, about?: RegExp): readonly string[] {
    const lines = this.#trace.filter((line) => line.length > 0).map((line) => line.join(" "));
    return (about === undefined ? lines : lines.filter((line) => about.test(line))).slice(-Math.max(1, count));
  }

  /** Only the first violation counts. It is not thrown: the code under test would catch it. */
  violated(invariant: number, text: string): void {
    if (this.violation !== undefined) return;
    this.note("VIOLATION of", invariant, text);
    this.violation = { invariant, text, step: this.steps, atMs: this.nowMs };
  }

  broke(error: unknown): void {
    this.violated(0, error instanceof Error ? `the code broke: ${error.stack ?? error.message}` : String(error));
  }
}

/** One event to come. */
export interface Planned {
  readonly atMs: number;
  readonly number: number;
  /** Undefined: it was cancelled. */
  run: (() => void) | undefined;
}

/** The events to come, soonest first; those of one moment in the order in which they were planned. */
class Agenda {
  readonly #queue = new TinyQueue<Planned>([], (one, other) => one.atMs - other.atMs || one.number - other.number);
  #count = 0;
  /** Milliseconds since the simulation began. */
  nowMs = 0;

  after(ms: number, run: () => void): Planned {
    this.#count += 1;
    const planned = { atMs: this.nowMs + ms, number: this.#count, run };
    this.#queue.push(planned);
    return planned;
  }

  /** Moves the clock on to the next event, and takes it off. */
  next(): Planned | undefined {
    const next = this.#queue.pop();
    if (next !== undefined) this.nowMs = next.atMs;
    return next;
  }
}
