/** A request's right to be at the host under its key. */
export interface Turn {
  /** It was answered, or did not leave. */
  end(): void;
  /** Nobody waits for its answer any more, but the host may send it for `holdMs`: until then its key is not free. */
  endUnanswered(holdMs: number): void;
}

interface Taken {
  readonly request: string;
  times: number;
}

interface Waiting {
  readonly key: string;
  readonly request: string;
  readonly resolve: (turn: Turn | undefined) => void;
}

/** Every request has it, if the host's answers do not tell requests apart. */
const oneForAll = "";

/**
 * Two different requests under one key exclude each other, because the answer to one would be taken for the other's. A
 * repeat of a request shares its key. Those that wait are served in order.
 */
export class Turns {
  readonly #oneAtATime: boolean;
  readonly #taken = new Map<string, Taken>();
  readonly #waiting = new Set<Waiting>();
  readonly #holds = new Set<NodeJS.Timeout>();

  constructor({ oneAtATime }: { readonly oneAtATime: boolean }) {
    this.#oneAtATime = oneAtATime;
  }

  /** @returns at once if the key is free; a promise of undefined if it is not free within `waitMs` */
  take(key: string, request: string, waitMs: number): Turn | Promise<Turn | undefined> {
    const turn = this.#take(key, request);
    if (turn !== undefined) return turn;
    return new Promise((resolve) => {
      const timer = setTimeout(() => waiting.resolve(undefined), waitMs);
      const waiting: Waiting = {
        key,
        request,
        resolve: (given) => {
          clearTimeout(timer);
          this.#waiting.delete(waiting);
          resolve(given);
        },
      };
      this.#waiting.add(waiting);
    });
  }

  close(): void {
    for (const { resolve } of [...this.#waiting]) resolve(undefined);
    for (const hold of this.#holds) clearTimeout(hold);
    this.#holds.clear();
  }

  #take(key: string, request: string): Turn | undefined {
    const keys = this.#oneAtATime ? [key, oneForAll] : [key];
    if (keys.some((one) => (this.#taken.get(one)?.request ?? request) !== request)) return undefined;
    for (const one of keys) {
      const taken = this.#taken.get(one);
      if (taken === undefined) this.#taken.set(one, { request, times: 1 });
      else taken.times += 1;
    }
    const held = new Set(keys);
    const free = (freed: readonly string[]) => {
      for (const one of freed) if (held.delete(one)) this.#free(one);
      this.#serve();
    };
    return {
      end: () => free(keys),
      endUnanswered: (holdMs) => {
        free([oneForAll]);
        const hold = setTimeout(() => {
          this.#holds.delete(hold);
          free([key]);
        }, holdMs).unref();
        this.#holds.add(hold);
      },
    };
  }

  #free(key: string): void {
    const taken = this.#taken.get(key);
    if (taken === undefined) return;
    taken.times -= 1;
    if (taken.times === 0) this.#taken.delete(key);
  }

  #serve(): void {
    for (const { key, request, resolve } of this.#waiting) {
      const turn = this.#take(key, request);
      if (turn !== undefined) resolve(turn);
    }
  }
}
