/** The point of a crash: before a call begins, or after it ran and before its result is seen. */
export interface CrashPoint {
  readonly at: string;
  readonly phase: "before" | "after";
  /** Selects the calls; default all. */
  readonly when?: (...args: never[]) => boolean;
}

/** A call, or its answer, that is kept back. */
interface Hold {
  readonly at: string;
  readonly phase: CrashPoint["phase"];
  readonly reached: () => void;
  readonly released: Promise<void>;
}

/**
 * The life of one process within a test's process. Calls of its parts pass through it. Once it has ended, no call
 * begins and none returns: its callers wait forever, as in a dead process.
 */
export class InstanceLife {
  #lives = true;
  #death: (CrashPoint & { readonly died: () => void }) | undefined;
  #break: (CrashPoint & { readonly error: Error; times: number }) | undefined;

  #hold: Hold | undefined;

  get lives(): boolean {
    return this.#lives;
  }

  end(): void {
    this.#lives = false;
  }

  /** Resolves when the crash has happened. */
  endsAt(death: CrashPoint): Promise<void> {
    return new Promise((resolve) => {
      this.#death = { ...death, died: resolve };
    });
  }

  /** Makes the next matching calls fail with the error, and none after them. */
  breaksAt(at: string, when: (...args: never[]) => boolean, error: Error, times = 1): void {
    this.#break = { at, phase: "before", when, error, times };
  }

  /** Makes the next call run, and its answer get lost. */
  losesAnswerOf(at: string, error: Error): void {
    this.#break = { at, phase: "after", error, times: 1 };
  }

  /** Makes the next call run, and keeps its answer back: `reached` resolves when it is there. */
  holdsAnswerOf(at: string): { readonly reached: Promise<void>; readonly release: () => void } {
    return this.#holds(at, "after");
  }

  /** Keeps the next call back before it runs: `reached` resolves when it is made. */
  holdsCallOf(at: string): { readonly reached: Promise<void>; readonly release: () => void } {
    return this.#holds(at, "before");
  }

  #holds(at: string, phase: Hold["phase"]) {
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    this.#hold = { at, phase, reached: reached.resolve, released: released.promise };
    return { reached: reached.promise, release: released.resolve };
  }

  /** Wraps a part, so that its calls depend on this life. */
  of<Part extends object>(part: Part): Part {
    return new Proxy(part, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => this.#call(name, () => Reflect.apply(value, target, args), args);
      },
    });
  }

  #call(name: string | symbol, carryOut: () => unknown, args: unknown[]): unknown {
    if (this.#endsNow(name, "before", args)) return forever();
    const broken = this.#break;
    const breaks = broken?.at === name && (broken.when?.(...(args as never[])) ?? true);
    if (breaks) {
      broken.times -= 1;
      if (broken.times === 0) this.#break = undefined;
      if (broken.phase === "before") return Promise.reject(broken.error);
    }
    if (breaks) return Promise.resolve(carryOut()).then(() => Promise.reject(broken.error));
    const hold = this.#hold?.at === name ? this.#hold : undefined;
    if (hold !== undefined) this.#hold = undefined;
    const result = hold?.phase === "before" ? this.#released(hold, carryOut) : carryOut();
    return result instanceof Promise ? this.#outlived(result, name, args, hold) : result;
  }

  async #released(hold: Hold, carryOut: () => unknown): Promise<unknown> {
    hold.reached();
    await hold.released;
    return this.#lives ? carryOut() : forever();
  }

  async #outlived(
    result: Promise<unknown>,
    name: string | symbol,
    args: unknown[],
    hold: Hold | undefined,
  ): Promise<unknown> {
    try {
      const value = await result;
      if (hold?.phase === "after") {
        hold.reached();
        await hold.released;
      }
      return this.#endsNow(name, "after", args) ? await forever() : value;
    } catch (error) {
      if (!this.#lives) return forever();
      throw error;
    }
  }

  #endsNow(name: string | symbol, phase: CrashPoint["phase"], args: unknown[]): boolean {
    const death = this.#death;
    if (this.#lives && death?.at === name && death.phase === phase && (death.when?.(...(args as never[])) ?? true)) {
      this.#lives = false;
      death.died();
    }
    return !this.#lives;
  }
}

function forever(): Promise<never> {
  return new Promise(() => {});
}
