import { expect, test } from "vitest";
import type { NewEvent } from "../events.ts";
import { createLog } from "../log.ts";
import { maintainPartitions } from "./maintenance.ts";

test("history that is kept longer than it is set is logged and recorded, and stops no start", async () => {
  const lines: string[] = [];
  const log = createLog("info", { write: (line) => void lines.push(line) });
  const recorded: NewEvent[] = [];
  const maintained = { created: 0, dropped: 0, waiting: [], troubles: [], daysAhead: 14 };
  const partitions = { maintain: async () => ({ ...maintained, prolonged: { days: 10, scheduleDays: 3 } }) };
  await maintainPartitions(partitions, { record: async (event) => void recorded.push(event) }, log);
  expect(lines.join()).toContain("Set PAYBELL_HISTORY_DAYS to at least 10");
  expect(recorded).toEqual([
    { kind: "history_waiting", partnerId: null, subjectId: null, detail: { waiting: [], keptDays: 10 } },
  ]);
});
