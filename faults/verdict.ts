import { percentile } from "../bench/statistics.ts";
import type { Slowdown } from "./catalogue.ts";
import type { ExpectedTotals } from "./expected-totals.ts";
import type { Journal } from "./journal.ts";
import { merchantTransIdOf } from "./journal.ts";
import type { Round } from "./round.ts";

/** A partner that waits longer after a fault was forgotten. */
const recoveryMaxMs = 30_000;
/** The 99th percentile of another partner's Sales, beside one that does its worst. */
const slowdownMax = 2;
const slowdownMsMax = 50;

/** What is counted; of commands, those that were accepted. */
const counts = ["faults", "commands", "lost", "ghosts", "duplicates", "orderViolations", "settlements"] as const;
type Counts = Readonly<Record<(typeof counts)[number], number>>;

/** The verdict on a series, or on all of them. */
export interface RunVerdict extends Counts {
  readonly slowestRecoveryMs: number;
  /** By the fault: one of a run is the sum of its rounds, because the 99th percentile of one says little. */
  readonly slowdowns: ReadonlyMap<string, Slowdown>;
  /** A sentence for each promise that was broken; empty when all were kept. */
  readonly broken: readonly string[];
}

/** Results observed directly, in addition to journal and totals. */
export interface Seen {
  /** IPNs that could not be verified. */
  readonly unauthentic: readonly string[];
  /** Commands that got no answer, although the service was whole again. */
  readonly unanswered: boolean;
  /** Instances that ended unexpectedly. */
  readonly deaths: readonly string[];
}

/** Compares acknowledged with delivered commands: each broken promise is one sentence. */
export function judge(journal: Journal, books: ExpectedTotals, rounds: readonly Round[], seen: Seen): RunVerdict {
  const lost = journal.lost();
  const neverAccepted = journal.neverAccepted();
  return {
    faults: rounds.length,
    commands: journal.accepted,
    lost: lost.length,
    ghosts: journal.ghosts.length + neverAccepted.length,
    duplicates: journal.duplicates,
    orderViolations: journal.orderViolations.length,
    settlements: books.settled,
    slowestRecoveryMs: Math.max(0, ...rounds.map(({ recoveryMs }) => recoveryMs ?? Number.POSITIVE_INFINITY)),
    slowdowns: summed(rounds.flatMap(({ fault, slowdown }) => (slowdown === undefined ? [] : [[fault, slowdown]]))),
    broken: [
      ...shown(lost, (no) => `lost: ${merchantTransIdOf(no)} was taken and never delivered${near(rounds, no)}`),
      ...shown(journal.ghosts, ({ no, why }) => `ghost: ${no === undefined ? "" : `${merchantTransIdOf(no)}: `}${why}`),
      ...shown(neverAccepted, (no) => `ghost: ${merchantTransIdOf(no)} came and was never taken${near(rounds, no)}`),
      ...shown(journal.orderViolations, ({ no, before }) => {
        return `order: ${merchantTransIdOf(no)} came before ${merchantTransIdOf(before)}${near(rounds, no)}`;
      }),
      ...(journal.outOfOrder > 0
        ? [`order: ${journal.outOfOrder} came with paybell-out-of-order within ten minutes`]
        : []),
      ...shown(books.differences(), (difference) => `totals: ${difference}`),
      ...duplicatesBeyond(journal, rounds),
      ...rounds.flatMap((round) => declinedByUs(journal, round)),
      ...rounds.flatMap(slowRecovery),
      ...seen.unauthentic.map((why) => `not authentic: ${why}`),
      ...(seen.unanswered ? ["unanswered: some commands had no answer at the end"] : []),
      ...seen.deaths.map((why) => `died: ${why}`),
    ],
  };
}

/** The first ones: more of the same would tell nothing new. */
function shown<One>(all: readonly One[], sentence: (one: One) => string): string[] {
  return all.slice(0, 10).map(sentence);
}

/** The sum of series. Whether a neighbour was slow is judged here alone. */
export function together(verdicts: readonly RunVerdict[]): RunVerdict {
  const slowdowns = summed(verdicts.flatMap((verdict) => [...verdict.slowdowns]));
  const sums = counts.map((count) => [count, verdicts.reduce((total, verdict) => total + verdict[count], 0)]);
  return {
    ...(Object.fromEntries(sums) as Counts),
    slowestRecoveryMs: Math.max(0, ...verdicts.map(({ slowestRecoveryMs }) => slowestRecoveryMs)),
    slowdowns,
    broken: [...verdicts.flatMap(({ broken }) => broken), ...[...slowdowns].flatMap(slowNeighbour)],
  };
}

function duplicatesBeyond(journal: Journal, rounds: readonly Round[]): string[] {
  return rounds.flatMap(({ fault, from, to, duplicatesMax }) => {
    const repeats = journal.repeats(from, to);
    if (repeats <= duplicatesMax) return [];
    return [`duplicates: ${repeats} after ${fault}, and ${duplicatesMax} at most were in flight`];
  });
}

function declinedByUs(journal: Journal, { fault, from, to, isPlanned }: Round): string[] {
  if (!isPlanned) return [];
  const declined = journal.declined(from, to);
  return declined.map(([no, code]) => `declined: ${merchantTransIdOf(no)} with ${code}, during ${fault}`);
}

function slowRecovery({ fault, recoveryMs }: Round): string[] {
  if (recoveryMs !== undefined && recoveryMs <= recoveryMaxMs) return [];
  const took = recoveryMs === undefined ? "did not end" : `took ${(recoveryMs / 1_000).toFixed(1)} s`;
  return [`recovery: after ${fault} it ${took}`];
}

function summed(all: readonly (readonly [fault: string, slowdown: Slowdown])[]): ReadonlyMap<string, Slowdown> {
  const sums = new Map<string, Slowdown>();
  for (const [fault, { quietMs, duringMs }] of all) {
    const sum = sums.get(fault);
    sums.set(fault, {
      quietMs: [...(sum?.quietMs ?? []), ...quietMs],
      duringMs: [...(sum?.duringMs ?? []), ...duringMs],
    });
  }
  return sums;
}

function slowNeighbour([fault, slowdown]: readonly [string, Slowdown]): string[] {
  const [quietMs, duringMs] = [percentile(slowdown.quietMs, 99), percentile(slowdown.duringMs, 99)];
  if (duringMs <= quietMs * slowdownMax && duringMs <= quietMs + slowdownMsMax) return [];
  return [`neighbour: ${slowdownText(fault, slowdown)}`];
}

export function slowdownText(fault: string, { quietMs, duringMs }: Slowdown): string {
  const [quiet, during] = [percentile(quietMs, 99), percentile(duringMs, 99)].map((ms) => ms.toFixed(0));
  return `a Sale took ${quiet} ms without ${fault}, and ${during} ms during it (p99 of ${duringMs.length})`;
}

function near(rounds: readonly Round[], no: number): string {
  const round = rounds.find(({ from, to }) => no >= from && no < to);
  return round === undefined ? "" : ` (${round.fault})`;
}
