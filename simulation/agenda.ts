/** One event to come. */
export interface Planned {
  readonly atMs: number;
  readonly number: number;
  /** Undefined: it was cancelled. */
  run: (() => void) | undefined;
}

/** The events to come, soonest first; those of one moment in the order in which they were planned. */
export class Agenda {
  readonly #heap: Planned[] = [];
  #count = 0;
  #nowMs = 0;

  /** Milliseconds since the simulation began. */
  get nowMs(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): Planned {
    this.#count += 1;
    const planned = { atMs: this.#nowMs + ms, number: this.#count, run };
    this.#heap.push(planned);
    this.#rise(this.#heap.length - 1, planned);
    return planned;
  }

  /** Moves the clock on to the next event, and takes it off. */
  next(): Planned | undefined {
    const [first] = this.#heap;
    const last = this.#heap.pop();
    if (first === undefined || last === undefined) return undefined;
    if (last !== first) this.#sink(last);
    this.#nowMs = first.atMs;
    return first;
  }

  #rise(from: number, planned: Planned): void {
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = this.#heap[parent];
      if (above === undefined || !isSooner(planned, above)) break;
      this.#heap[at] = above;
      at = parent;
    }
    this.#heap[at] = planned;
  }

  #sink(planned: Planned): void {
    const heap = this.#heap;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      const left = heap[child];
      const right = heap[child + 1];
      if (left === undefined) break;
      const isRight = right !== undefined && isSooner(right, left);
      const sooner = isRight ? right : left;
      if (!isSooner(sooner, planned)) break;
      heap[at] = sooner;
      at = isRight ? child + 1 : child;
    }
    heap[at] = planned;
  }
}

function isSooner(one: Planned, other: Planned): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.number < other.number);
}
