import type { CallbackTarget } from "./callback.ts";
import { drive, type Load } from "./load.ts";

/** The input for opening a contender. */
export interface ContenderStart {
  readonly target: CallbackTarget;
  /** An empty database of its own; "" for those that need none. */
  readonly databaseUrl: string;
  /** Redis' unix socket; "" for those that need none. */
  readonly redisSocket: string;
  /** One of its settings. */
  readonly setting: ContenderSetting;
}

/** A contender's own settings: the best of several that were tried. */
export type ContenderSetting = Readonly<Record<string, number>>;

export interface RoundOutcome {
  /** Notifications accepted by the receiver and, for all but raw, recorded as done. */
  readonly count: number;
  /** From the first to the last recorded. */
  readonly elapsedMs: number;
  /** CPU time of the contender's own process. */
  readonly cpuMs: number;
}

/** The process of a row that keeps itself busy: the loops and the peers. */
export type ContenderMethods = {
  readonly open: (start: ContenderStart) => Promise<void>;
  readonly round: (load: Load) => Promise<RoundOutcome>;
  readonly close: (input: undefined) => Promise<void>;
};

/** Concurrent callers in every row. */
export const producers = 256;
/** Bound on jobs handed over and not done: more would only make a peer's tables longer. */
const outstandingMax = 1_024;

/**
 * Hands over batches, or single jobs at a given rate, until the time is up, and waits until all is done.
 *
 * @param done how many are done, ever
 */
export async function driveRound(
  process: NodeJS.Process,
  load: Load,
  mostAtOnce: number,
  queue: { readonly handOver: (count: number) => Promise<void>; readonly progress: RoundProgress },
): Promise<RoundOutcome> {
  const startedMs = performance.now();
  const cpuStart = process.cpuUsage();
  const doneBefore = queue.progress.done;
  let handedOver = 0;
  const batch = load.ratePerS === undefined ? mostAtOnce : 1;
  await drive(load, Math.max(1, Math.floor(producers / batch)), async () => {
    while (handedOver - (queue.progress.done - doneBefore) + batch > outstandingMax) await queue.progress.more();
    handedOver += batch;
    await queue.handOver(batch);
  });
  while (queue.progress.done - doneBefore < handedOver) await queue.progress.more();
  const elapsedMs = performance.now() - startedMs;
  const { user, system } = process.cpuUsage(cpuStart);
  return { count: handedOver, elapsedMs, cpuMs: (user + system) / 1_000 };
}

/** Counts what is done, and wakes who waits for more. */
export class RoundProgress {
  done = 0;
  #waiting: (() => void)[] = [];

  add(count = 1): void {
    this.done += count;
    if (this.#waiting.length > 0) for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Resolves when something more is done. */
  more(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
