import { chmod, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { Cleanup } from "../bench/command.ts";
import type { InjectedFault } from "./catalogue.ts";
import { runFaults, summaryOf } from "./main.ts";
import { readOptions } from "./plan.ts";
import { seeded } from "./random.ts";
import { eventually } from "./round.ts";
import { runSeries } from "./series.ts";

const cleanup = new Cleanup();
const progress: string[] = [];
const note = (line: string) => void progress.push(line);
afterAll(() => cleanup.run());

test("each fault of the short form happens once, and every promise is kept", async () => {
  // Most of the time a stage waits for leases and circuits, and the load goes on: at this rate IPNs wait or are in flight
  // in every fault, at half of the processor time of the short form's own.
  const options = readOptions(["--quick", "--seed", "1", "--per-second", "30", "--commands", "300"]);
  const verdict = await runFaults(options, cleanup, note);
  expect(verdict.broken, progress.join("\n")).toEqual([]);
  expect(verdict.settlements).toBeGreaterThan(0);
  // Programs read this line: no key less, and none more.
  expect(summaryOf(1, verdict)).toEqual({
    seed: 1,
    faults: expect.any(Number),
    commands: expect.any(Number),
    lost: 0,
    ghosts: 0,
    duplicates: expect.any(Number),
    order_violations: 0,
    slowest_recovery_s: expect.any(Number),
  });
});

/** A fault that no service can survive: undelivered notifications are deleted. */
const sabotage: InjectedFault = {
  name: "sabotage",
  needs: "nothing",
  isQuick: false,
  async happen({ stage, over }) {
    for (const link of stage.partnerLinks) await link.begin("refuse");
    // One that waits for its next try is in no memory, so that it is not sent all the same.
    const waiting = "DELETE FROM pending WHERE attempts_made > 0 AND due_at > now() + interval '500 ms' RETURNING id";
    const isDeleted = async () => (await stage.primary.query(waiting, [], "paybell")).length > 0;
    await eventually(Number.POSITIVE_INFINITY, isDeleted);
    for (const link of stage.partnerLinks) await link.end();
    over();
    return { instances: 0 };
  },
};

test("a notification that is deleted before its delivery is reported as lost", async () => {
  const folder = await mkdtemp(join(tmpdir(), "paybell-faults-"));
  cleanup.addFolder(folder);
  await chmod(folder, 0o711);
  const stage = { instances: 1, hasStandby: false, partners: 2 };
  const plan = {
    series: { stage, faults: [sabotage] },
    folder: join(folder, "stage"),
    commandsOfRound: 100,
    perSecond: 100,
    isQuick: true,
  };
  const verdict = await runSeries(plan, seeded(1), cleanup, note);
  expect(verdict.lost).toBeGreaterThan(0);
  expect(verdict.broken[0]).toMatch(/^lost: f-\d+ was taken and never delivered \(sabotage\)$/);
});
