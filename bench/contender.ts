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

/** A contender that is open. It counts in `progress` what it has done. */
export interface OpenContender {
  /** Jobs of one call. */
  readonly batch: number;
  handOver(count: number): Promise<void>;
  /** Resolves when all that is done is recorded, if that is later. */
  recorded?(): Promise<void>;
  close(): Promise<unknown>;
}

/** Concurrent callers in every row. */
export const producers = 256;
/** Bound on jobs handed over and not done: more would only make a peer's tables longer. */
const outstandingMax = 1_024;

/** A round hands over batches, or single jobs at a given rate, until the time is up, and waits until all is done. */
export function contenderMethods(
  process: NodeJS.Process,
  open: (start: ContenderStart, progress: RoundProgress) => Promise<OpenContender>,
): ContenderMethods {
  const progress = new RoundProgress();
  let opened: OpenContender | undefined;
  return {
    async open(start) {
      opened = await open(start, progress);
    },
    async round(load): Promise<RoundOutcome> {
      if (opened === undefined) throw new Error("A round needs an open contender.");
      const { handOver, recorded, batch: largest } = opened;
      const startedMs = performance.now();
      const cpuStart = process.cpuUsage();
      const doneBefore = progress.done;
      let count = 0;
      const batch = load.ratePerS === undefined ? largest : 1;
      await drive(load, Math.max(1, Math.floor(producers / batch)), async () => {
        while (count - (progress.done - doneBefore) + batch > outstandingMax) await progress.more();
        count += batch;
        await handOver(batch);
      });
      while (progress.done - doneBefore < count) await progress.more();
      await recorded?.();
      const { user, system } = process.cpuUsage(cpuStart);
      return { count, elapsedMs: performance.now() - startedMs, cpuMs: (user + system) / 1_000 };
    },
    async close() {
      await opened?.close();
    },
  };
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
