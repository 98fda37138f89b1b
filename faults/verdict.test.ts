import { expect, test } from "vitest";
import { ExpectedTotals } from "./expected-totals.ts";
import { Journal } from "./journal.ts";
import { cardIpn } from "./received.fixture.ts";
import type { Round } from "./round.ts";
import { judge, together } from "./verdict.ts";

const nothingSeen = { unauthentic: [], unanswered: false, deaths: [] };
const round: Round = {
  fault: "kill-service",
  from: 0,
  to: 2,
  recoveryMs: 900,
  drainedMs: 1_000,
  duplicatesMax: 1,
  isPlanned: false,
};

function delivered(times: number): Journal {
  const journal = new Journal();
  for (const no of [0, 1]) {
    journal.begin(0);
    journal.accept(no, `t-${no}`);
    for (let time = 0; time < times; time += 1) journal.deliver(0, cardIpn(no));
  }
  return journal;
}

test("a run that kept every promise reports nothing", () => {
  const verdict = judge(delivered(1), new ExpectedTotals(), [round], nothingSeen);
  expect(verdict).toMatchObject({ faults: 1, commands: 2, lost: 0, ghosts: 0, slowestRecoveryMs: 900, broken: [] });
});

test("a loss is reported with the fault that it was near", () => {
  const { lost, broken } = judge(delivered(0), new ExpectedTotals(), [round], nothingSeen);
  expect(lost).toBe(2);
  expect(broken[0]).toBe("lost: f-0 was taken and never delivered (kill-service)");
});

test("more duplicates than were in flight at the fault are too many", () => {
  const { duplicates, broken } = judge(delivered(2), new ExpectedTotals(), [round], nothingSeen);
  expect(duplicates).toBe(2);
  expect(broken).toEqual(["duplicates: 2 after kill-service, and 1 at most were in flight"]);
  expect(judge(delivered(2), new ExpectedTotals(), [{ ...round, duplicatesMax: 2 }], nothingSeen).broken).toEqual([]);
});

test("a command that a planned stop declines is reported", () => {
  const journal = delivered(1);
  journal.decline(1, "91");
  // It was begun before the planned stop, whenever its end became known.
  const restart = { ...round, fault: "rolling-restart", from: 2, to: 3, isPlanned: true };
  expect(judge(journal, new ExpectedTotals(), [round, restart], nothingSeen).broken).toEqual([]);
  const { broken } = judge(journal, new ExpectedTotals(), [{ ...restart, from: 1, to: 2 }], nothingSeen);
  expect(broken).toEqual(["declined: f-1 with 91, during rolling-restart"]);
});

/** A hundred Sales with this 99th percentile. */
const sales = (p99Ms: number) => [p99Ms, p99Ms, ...Array<number>(98).fill(1)];

test("a Sale that takes much longer beside a partner at its worst is reported", () => {
  const slow = (quietMs: number, duringMs: number) => {
    const slowdown = { quietMs: sales(quietMs), duringMs: sales(duringMs) };
    const rounds = [{ ...round, duplicatesMax: 2, slowdown }];
    return together([judge(delivered(2), new ExpectedTotals(), rounds, nothingSeen)]).broken;
  };
  expect(slow(10, 20)).toEqual([]);
  expect(slow(10, 21)).toEqual(["neighbour: a Sale took 10 ms without kill-service, and 21 ms during it (p99 of 100)"]);
  expect(slow(100, 151)).toHaveLength(1);
});

test("the rounds of all series are judged as one: a slow one alone says little", () => {
  const fast = { quietMs: sales(10), duringMs: sales(10) };
  const slow = { quietMs: sales(10), duringMs: sales(90) };
  const judged = (...slowdowns: (typeof fast)[]) => {
    const rounds = slowdowns.map((slowdown) => ({ ...round, duplicatesMax: 2, slowdown }));
    return judge(delivered(2), new ExpectedTotals(), rounds, nothingSeen);
  };
  expect(judged(slow).broken).toEqual([]);
  expect(together([judged(slow)]).broken).toHaveLength(1);
  expect(together([judged(fast, slow), judged(fast, fast)]).broken).toEqual([]);
  expect(together([judged(slow, slow), judged(fast, slow)]).broken).toEqual([
    "neighbour: a Sale took 10 ms without kill-service, and 90 ms during it (p99 of 400)",
  ]);
});

test("an IPN that says it is out of order is reported, because no fault lasts for ten minutes", () => {
  const journal = new Journal();
  journal.begin(0);
  journal.accept(0, "t-0");
  journal.deliver(0, cardIpn(0, { outOfOrder: true }));
  const { broken } = judge(journal, new ExpectedTotals(), [round], nothingSeen);
  expect(broken).toEqual(["order: 1 came with paybell-out-of-order within ten minutes"]);
});

test("a recovery that took too long, or never ended, is reported", () => {
  const slow = judge(delivered(1), new ExpectedTotals(), [{ ...round, recoveryMs: 31_000 }], nothingSeen);
  expect(slow.broken).toEqual(["recovery: after kill-service it took 31.0 s"]);
  const never = judge(delivered(1), new ExpectedTotals(), [{ ...round, recoveryMs: undefined }], nothingSeen);
  expect(never.broken).toEqual(["recovery: after kill-service it did not end"]);
});

test("IPNs that are not authentic, commands without an answer, and dead instances are reported", () => {
  const seen = { unauthentic: ["partner 1: signature"], unanswered: true, deaths: ["after kill-postgres"] };
  expect(judge(delivered(1), new ExpectedTotals(), [round], seen).broken).toHaveLength(3);
});

test("the results of stages are added up, with the slowest recovery of all", () => {
  const one = judge(delivered(1), new ExpectedTotals(), [round], nothingSeen);
  const other = judge(delivered(0), new ExpectedTotals(), [{ ...round, recoveryMs: 2_000 }], nothingSeen);
  expect(together([one, other])).toMatchObject({ faults: 2, commands: 4, lost: 2, slowestRecoveryMs: 2_000 });
  expect(together([one, other]).broken).toHaveLength(2);
});
