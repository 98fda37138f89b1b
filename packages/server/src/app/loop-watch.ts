import { PerformanceObserver } from "node:perf_hooks";
import type { TroubleLog } from "../log.ts";

const lookEveryMs = 250;
const blockedMs = 1_000;
/** From this share of the time on, something is its cause. */
const mostShare = 0.6;

/** Logs that the event loop was blocked for more than a second, and by what. @returns a function that ends the watch */
export function watchLoop(log: Pick<TroubleLog, "warn">): () => void {
  let collectingMs = 0;
  const collections = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) collectingMs += duration;
  });
  collections.observe({ entryTypes: ["gc"] });
  let lookedMs = performance.now();
  let usage = process.cpuUsage();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    const forMs = nowMs - lookedMs - lookEveryMs;
    if (forMs >= blockedMs) {
      const { user, system } = process.cpuUsage(usage);
      const cause = causeOf({ forMs, processorMs: (user + system) / 1_000, collectingMs });
      log.warn({ blockedMs: Math.round(forMs), cause }, "the event loop was blocked");
    }
    lookedMs = nowMs;
    usage = process.cpuUsage();
    collectingMs = 0;
  }, lookEveryMs);
  timer.unref();
  return () => {
    clearInterval(timer);
    collections.disconnect();
  };
}

export interface Blocked {
  readonly forMs: number;
  /** Processor time of all threads of the process. */
  readonly processorMs: number;
  readonly collectingMs: number;
}

export function causeOf({ forMs, processorMs, collectingMs }: Blocked): string {
  if (collectingMs >= forMs * mostShare) return "garbage collection: it needs more memory";
  if (processorMs >= forMs * mostShare) return "work of its own, such as a very large request or notification";
  return "the machine: other programs had its processors, or it was suspended";
}
