import type { BacklogResult } from "./backlog.ts";
import type { BurstResult } from "./burst.ts";
import type { ConditionResults } from "./conditions.ts";
import type { IsolationResult } from "./isolation.ts";
import type { OpenTransactionResult } from "./open-transaction.ts";
import type { RecoveryResult } from "./recovery.ts";
import { line, megabytes, memoryText, seconds, spreadText } from "./report-lines.ts";
import type { RestartResult } from "./restart.ts";
import type { ScaleStep } from "./scale.ts";
import type { SessionResult } from "./session.ts";
import type { TakeoverResult } from "./takeover.ts";

/** Lines of what was measured of the service under conditions. */
export function conditionLines(result: ConditionResults): string[] {
  const { memory, burst, isolation, backlog, openTransaction, recovery, restart, takeover, session, scale } = result;
  return [
    ...(memory ? [line(`memory at ${memory.perS.toFixed(0)} a second`, memoryText(memory.most), "≤ 250 MB")] : []),
    ...(burst ? burstLines(burst) : []),
    ...(isolation ? isolationLines(isolation) : []),
    ...(backlog ? backlogLines(backlog) : []),
    ...(openTransaction ? openTransactionLines(openTransaction) : []),
    ...(recovery ? recoveryLines(recovery) : []),
    ...(restart ?? []).map(restartLine),
    ...(takeover ? [takeoverLine(takeover)] : []),
    ...(session ? sessionLines(session) : []),
    ...(scale ?? []).map(scaleLine),
  ];
}

function burstLines({ completions, steadyPerS, acceptedPerS, meanwhilePerS, deliveredPerS }: BurstResult): string[] {
  const rate = (perS: number) => perS.toFixed(0);
  return [
    line(
      `a burst of ${completions}, each with its URL`,
      `accepted at ${rate(acceptedPerS)} a second, delivered at ${rate(meanwhilePerS)} meanwhile and ` +
        `${rate(deliveredPerS)} over all: ${(deliveredPerS / steadyPerS).toFixed(2)} of a steady load's ` +
        rate(steadyPerS),
      "≥ 0.9",
    ),
  ];
}

function isolationLines({ ratePerS, pending, p99Ms, p99OfWindowsMs, ratio, allowedMs }: IsolationResult): string[] {
  const beside = (manner: "late" | "never") => `${p99Ms[manner].toFixed(1)} ms (${ratio[manner].toFixed(2)} ×)`;
  const windows = (manner: keyof typeof p99OfWindowsMs) => p99OfWindowsMs[manner].map((ms) => ms.toFixed(0)).join(" ");
  return [
    line(
      `isolation at ${ratePerS} a second`,
      `p99 ${p99Ms["at-once"].toFixed(1)} ms; beside one that answers in 10 s ${beside("late")}, ` +
        `never ${beside("never")}`,
      `≤ ${allowedMs.toFixed(1)} ms`,
    ),
    line(
      "",
      `${pending} pending for that one; p99 of each window ` +
        `${windows("at-once")} | ${windows("late")} | ${windows("never")}`,
      "",
    ),
  ];
}

function backlogLines(result: BacklogResult): string[] {
  const { pending, rowsPerRound, fewPerS, manyPerS, manyOfFew, memoryGrowth, statements, grown } = result;
  const means = statements.map(({ query, fewMs, manyMs }) =>
    line("", `${fewMs.toFixed(2)} → ${manyMs.toFixed(2)} ms  ${query}`, ""),
  );
  return [
    line(
      `drain with ${pending} pending`,
      `${manyPerS.median.toFixed(0)} a second, of ${fewPerS.median.toFixed(0)} with ${rowsPerRound}: ` +
        spreadText(manyOfFew),
      "≥ 0.8",
    ),
    line("its memory", `${megabytes(memoryGrowth)} more`, "≤ 30 MB"),
    line("statements that grow with it", grown.length === 0 ? "none" : String(grown.length), "none"),
    ...means,
  ];
}

function openTransactionLines(result: OpenTransactionResult): string[] {
  const { pending, heldMs, beforePerS, windows, lastOfBefore, afterPerS } = result;
  const first = windows[0];
  const last = windows.at(-1);
  return [
    line(
      `a transaction open for ${(heldMs / 1_000).toFixed(0)} s`,
      `drain ${beforePerS.toFixed(0)} → ${last?.perS.toFixed(0)} a second (${lastOfBefore.toFixed(2)} ×), ` +
        `${afterPerS.toFixed(0)} after it; ${pending} pending`,
      "",
    ),
    line(
      "",
      `claim ${first?.claimMs.toFixed(1)} → ${last?.claimMs.toFixed(1)} ms for ` +
        `${last?.rowsPerClaim.toFixed(0)} rows, ${last?.dead} dead rows; ` +
        `a second, by window ${windows.map(({ perS }) => perS.toFixed(0)).join(" ")}`,
      "",
    ),
  ];
}

function recoveryLines(result: RecoveryResult): string[] {
  return [
    line(
      `recovery after ${result.downMs / 1_000} s down`,
      `first POST ${seconds(result.firstMs)}, all ${result.completions} delivered ` +
        `${seconds(result.drainedMs)} after they were back; ${result.lost} lost, ${result.duplicates} twice`,
      "0 lost",
    ),
    line("", `at one partner at most ${result.mostAtOnce} at once`, `≤ ${result.maxInFlight}`),
    line(
      "",
      `${result.mostInASecond} within a second; ` +
        `${result.mostInASecondLimited} where ${result.maxPerSecond} are allowed`,
      `≤ ${result.maxPerSecond * 2}: one second's worth may be saved up`,
    ),
    line(
      "",
      `${result.withoutProbe} partners without a probe going ahead; ` +
        `${result.failed} POSTs failed while they were down`,
      "0",
    ),
  ];
}

function restartLine({ manner, awayMs, beforePerS, fullSpeedAfterMs, ...counts }: RestartResult): string {
  const { accepted, refused, lost, duplicates } = counts;
  return line(
    `PostgreSQL restarted, ${manner}`,
    `away ${seconds(awayMs)}, nine tenths of ${beforePerS.toFixed(0)} a second ${seconds(fullSpeedAfterMs)} after it ` +
      `was back; of ${accepted} accepted ${lost} lost, ${duplicates} twice; ${refused} calls repeated`,
    "≤ 5 s, 0 lost",
  );
}

function takeoverLine({ orphaned, firstMs, lastMs }: TakeoverResult): string {
  return line(
    "one of two instances killed",
    `first delivery to one of its ${orphaned} partners ${seconds(firstMs)} after it, to the last ${seconds(lastMs)}`,
    "≤ 9 s",
  );
}

function sessionLines({ holderPerS, otherPerS, holderMs, otherMs, takeoverMs }: SessionResult): string[] {
  return [
    line(
      "one session for two instances",
      `Sales a second at the one with it ${holderPerS.toFixed(0)}, at the other ${otherPerS.toFixed(0)}; one caller ` +
        `${holderMs.toFixed(1)} ms, ${otherMs.toFixed(1)} ms a Sale`,
      "",
    ),
    line("the one with it killed", `the other has an answer of the host ${seconds(takeoverMs)} after it`, "≤ 9 s"),
  ];
}

function scaleLine({ instances, perS, ofOne, ownUs, postgresUs, receiverUs }: ScaleStep): string {
  const us = [ownUs, postgresUs, receiverUs].map((each) => (each === undefined ? "?" : each.toFixed(0))).join("/");
  return line(
    `${instances} ${instances === 1 ? "instance" : "instances"}`,
    `${perS.median.toFixed(0)} a second, of one ${spreadText(ofOne)}; µs own/pg/rcv ${us}`,
    "",
  );
}
