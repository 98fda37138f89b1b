import { type BenchOptions, loopNames, type PartName, peerNames, rowNames } from "./options.ts";

/** Services, databases and peers start and stop: seen on two cores. */
const startMs = 3_000;
const stopMs = 500;
/** The slowest that a backlog is written. */
const rowsWrittenPerMs = 12;
/** The slowest that one is drained. */
const rowsDrainedPerMs = 3;
/** The wait for hanging requests after each of the two kinds of faults. */
const troubleEndsMs = 20_000;
/** A probe that waits, twice as long as they were down at most, and the drain. */
const recoveryEndsMs = 30_000;
/** A lease that expires, and what its owner left. */
const takeoverEndsMs = 10_000;

/** The approximate duration of the run: it is printed first, for a person who waits. */
export function expectedMs(options: BenchOptions): number {
  return [...options.parts].reduce((sum, part) => sum + expectedOfMs(part, options), 2 * startMs);
}

export function inWords(ms: number): string {
  return ms < 120_000 ? `${Math.round(ms / 5_000) * 5} seconds` : `${Math.round(ms / 60_000)} minutes`;
}

function expectedOfMs(part: PartName, options: BenchOptions): number {
  const { rounds, roundMs, isolation, backlog, openTransaction, recovery, restart, takeover, session, scale } = options;
  if (rowNames.some((name) => name === part)) {
    const calibration = isContender(part) && options.calibrateMs > 0 ? 3 * (options.calibrateMs + 1_200) : 0;
    return 1_000 + calibration + (rounds + 1) * (roundMs * 1.1 + 100);
  }
  switch (part) {
    case "latency":
    case "sale-latency":
      return 1_500 + options.latencyWindows * options.latencyWindowMs;
    case "memory":
      return startMs + options.memoryMs * 1.05 + stopMs;
    case "burst":
      return startMs + 2.5 * options.burst.steadyMs + options.burst.completions / rowsDrainedPerMs + stopMs;
    case "isolation":
      return startMs + 4 * (1_500 + isolation.windows * isolation.windowMs) + 2 * troubleEndsMs + 3_000;
    case "backlog": {
      const written = backlog.pending + (backlog.rounds + 1) * 2 * backlog.rowsPerRound;
      const drained = (backlog.rounds + 1) * 2 * backlog.rowsPerRound;
      return 2 * startMs + written / rowsWrittenPerMs + drained / rowsDrainedPerMs;
    }
    case "open-transaction":
      // More is written as often as most of it is drained.
      return (
        startMs +
        (3 * openTransaction.pending) / rowsWrittenPerMs +
        openTransaction.holdMs +
        4 * openTransaction.windowMs
      );
    case "recovery":
      return startMs + recovery.downMs * 2 + recoveryEndsMs;
    case "restart":
      return 2 * startMs + 2 * (restart.beforeMs + restart.afterMs + startMs);
    case "takeover":
      return 2 * startMs + takeover.beforeMs + takeoverEndsMs;
    case "session":
      return 3 * startMs + (1 + 4 * session.rounds) * session.roundMs + takeoverEndsMs;
    case "scale":
      return scale.rounds * scale.instances.length * (startMs + 2.2 * scale.roundMs + stopMs);
    case "library":
      return 1_000 + (rounds + 1) * (roundMs / 2);
    case "start":
      return 50_000;
    default:
      throw new TypeError(`Nobody knows how long ${part} takes.`);
  }
}

function isContender(part: PartName): boolean {
  return [...loopNames, ...peerNames].some((name) => name === part);
}
