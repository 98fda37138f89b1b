import { BoundedMap } from "../../../bounded-map.ts";
import type { Clock } from "../../../clock.ts";
import { NoAnswer } from "../../acquirer.ts";
import type { IsoMessage } from "../message/codec.ts";

export interface ExchangeOptions {
  readonly timeoutMs: number;
  /** The connection over which it is sent. */
  readonly owner: object;
  /** Called once with an answer that comes late. */
  readonly onLateAnswer: (answer: IsoMessage) => void;
}

/** A request that was sent, or is about to be. */
interface Exchange {
  readonly answer: Promise<IsoMessage>;
  /** It was never sent: no caller waits for it, and no answer is expected. */
  cancel(): void;
}

interface Waiting {
  readonly owner: object;
  readonly resolve: (answer: IsoMessage) => void;
  /** Ends the wait; a later answer goes to `onLateAnswer`. */
  readonly giveUp: (reason: string) => void;
}

interface Late {
  readonly onLateAnswer: (answer: IsoMessage) => void;
  readonly untilMs: number;
}

/** For how long, and for how many requests, a late answer is still known. */
const lateForMs = 600_000;
const lateMax = 10_000;
/** The number of answers of which a repetition is still recognised. */
const answeredMax = 2_000;

/**
 * The requests that wait for an answer, by what a host echoes of them. A request and its repeat have that in common:
 * the first answer goes to a caller that still waits, the next to one that has given up, the oldest first.
 */
export class Exchanges {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<Waiting>>();
  readonly #onLeave: (() => void)[] = [];
  /** In the order in which they gave up. */
  readonly #late = new Map<string, Late[]>();
  /** The last answer under each key. */
  readonly #answered = new BoundedMap<string, string>(answeredMax);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  open(key: string, { timeoutMs, owner, onLateAnswer }: ExchangeOptions): Exchange {
    const { promise, resolve, reject } = Promise.withResolvers<IsoMessage>();
    const leave = () => {
      clearTimeout(timer);
      this.#remove(key, waiting);
    };
    const waiting: Waiting = {
      owner,
      resolve: (answer) => {
        leave();
        resolve(answer);
      },
      giveUp: (reason) => {
        leave();
        this.#remember(key, { onLateAnswer, untilMs: this.#clock.monotonicMs() + lateForMs });
        reject(new NoAnswer(reason));
      },
    };
    const timer = setTimeout(() => waiting.giveUp(`The host did not answer within ${timeoutMs} ms`), timeoutMs);
    const known = this.#waiting.get(key);
    if (known === undefined) this.#waiting.set(key, new Set([waiting]));
    else known.add(waiting);
    return { answer: promise, cancel: leave };
  }

  /** `unknown`: nobody has asked, or it is too long ago. `repeated`: the host sends the same answer once more. */
  settle(key: string, answer: IsoMessage): "settled" | "repeated" | "unknown" {
    const before = this.#answered.get(key);
    const now = [answer.mti, ...answer.fields].join();
    this.#answered.set(key, now);
    const [waiting] = this.#waiting.get(key) ?? [];
    if (waiting !== undefined) {
      waiting.resolve(answer);
      return "settled";
    }
    const [late, ...others] = this.#lateOf(key);
    if (others.length > 0) this.#late.set(key, others);
    else this.#late.delete(key);
    if (late === undefined) return before === now ? "repeated" : "unknown";
    late.onLateAnswer(answer);
    return "settled";
  }

  /** Resolves when no caller waits for an answer over this connection. */
  async idle(owner: object): Promise<void> {
    const isWaiting = () => [...this.#waiting.values()].some((set) => [...set].some((one) => one.owner === owner));
    while (isWaiting()) await new Promise<void>((resolve) => this.#onLeave.push(resolve));
  }

  /** Ends the waits of one connection. Late answers are still accepted, over any. */
  giveUp(owner: object, reason: string): void {
    const all = [...this.#waiting.values()].flatMap((set) => [...set]);
    for (const waiting of all) if (waiting.owner === owner) waiting.giveUp(reason);
  }

  #remove(key: string, waiting: Waiting): void {
    const set = this.#waiting.get(key);
    set?.delete(waiting);
    if (set?.size === 0) this.#waiting.delete(key);
    for (const resolve of this.#onLeave.splice(0)) resolve();
  }

  #remember(key: string, late: Late): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [oldest, all] of this.#late) {
      if (this.#late.size < lateMax && (all.at(-1)?.untilMs ?? 0) >= nowMs) break;
      this.#late.delete(oldest);
    }
    this.#late.set(key, [...this.#lateOf(key), late]);
  }

  /** A message that is repeated for days has some that are too long ago. */
  #lateOf(key: string): Late[] {
    const nowMs = this.#clock.monotonicMs();
    return (this.#late.get(key) ?? []).filter(({ untilMs }) => untilMs >= nowMs);
  }
}

/** A request's exclusive use of its key at the host. */
export interface MatchLock {
  /** It was answered, or did not leave. */
  release(): void;
  /** Nobody waits for its answer any more, but the host may send it for `holdMs`: until then its key is not free. */
  releaseUnanswered(holdMs: number): void;
}

interface Locked {
  readonly request: string;
  times: number;
}

interface WaitingRequest {
  readonly key: string;
  readonly request: string;
  readonly resolve: (lock: MatchLock | undefined) => void;
}

/** Every request has it, if the host's answers do not tell requests apart. */
const oneForAll = "";

/**
 * Two different requests under one key exclude each other, because the answer to one would be taken for the other's. A
 * repeat of a request shares its key. Those that wait are served in order.
 */
export class MatchLocks {
  readonly #oneAtATime: boolean;
  readonly #locked = new Map<string, Locked>();
  readonly #waiting = new Set<WaitingRequest>();
  readonly #holds = new Set<NodeJS.Timeout>();

  constructor({ oneAtATime }: { readonly oneAtATime: boolean }) {
    this.#oneAtATime = oneAtATime;
  }

  /** @returns at once if the key is free; a promise of undefined if it is not free within `waitMs` */
  lock(key: string, request: string, waitMs: number): MatchLock | Promise<MatchLock | undefined> {
    const lock = this.#tryLock(key, request);
    if (lock !== undefined) return lock;
    return new Promise((resolve) => {
      const timer = setTimeout(() => waiting.resolve(undefined), waitMs);
      const waiting: WaitingRequest = {
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

  /** None is given for so long, if one request at a time has it: a request of an earlier process may be answered yet. */
  lockAll(afterMs: number): void {
    if (!this.#oneAtATime || afterMs <= 0) return;
    this.#locked.set(oneForAll, { request: "of an earlier process", times: 1 });
    this.#later(afterMs, () => this.#free(oneForAll));
  }

  close(): void {
    for (const { resolve } of [...this.#waiting]) resolve(undefined);
    for (const hold of this.#holds) clearTimeout(hold);
    this.#holds.clear();
  }

  #tryLock(key: string, request: string): MatchLock | undefined {
    const keys = this.#oneAtATime ? [key, oneForAll] : [key];
    if (keys.some((one) => (this.#locked.get(one)?.request ?? request) !== request)) return undefined;
    for (const one of keys) {
      const locked = this.#locked.get(one);
      if (locked === undefined) this.#locked.set(one, { request, times: 1 });
      else locked.times += 1;
    }
    const held = new Set(keys);
    const free = (freed: readonly string[]) => {
      for (const one of freed) if (held.delete(one)) this.#free(one);
    };
    return {
      release: () => free(keys),
      releaseUnanswered: (holdMs) => {
        free([oneForAll]);
        this.#later(holdMs, () => free([key]));
      },
    };
  }

  #later(afterMs: number, act: () => void): void {
    const hold = setTimeout(() => {
      this.#holds.delete(hold);
      act();
    }, afterMs).unref();
    this.#holds.add(hold);
  }

  #free(key: string): void {
    const locked = this.#locked.get(key);
    if (locked === undefined) return;
    locked.times -= 1;
    if (locked.times > 0) return;
    this.#locked.delete(key);
    this.#serve();
  }

  #serve(): void {
    for (const { key, request, resolve } of this.#waiting) {
      const lock = this.#tryLock(key, request);
      if (lock !== undefined) resolve(lock);
    }
  }
}
