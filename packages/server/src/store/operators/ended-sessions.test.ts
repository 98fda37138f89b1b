import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { openOwnDatabase } from "../../../../../test/support/connections.ts";
import { EndedSessions } from "../../operators/operators.ts";
import { postgresEndedSessions } from "./operators.ts";

test("an ended session is known to other instances within two seconds, and stored until it would be over", async () => {
  const connections = await openOwnDatabase({ as: "service" });
  let nowMs = 0;
  const instance = () => new EndedSessions(postgresEndedSessions(connections.pool), { monotonicMs: () => nowMs });
  const [one, two] = [instance(), instance()];
  const [ended, open, over] = [randomBytes(32), randomBytes(32), randomBytes(32)];
  expect([await one.has(ended), await two.has(ended), await two.has(open)]).toEqual([false, false, false]);
  const inAnHour = Date.now() + 3_600_000;
  await one.add(ended, inAnHour);
  await one.add(ended, inAnHour);
  expect(await one.has(ended)).toBe(true);
  nowMs = 2_000;
  expect([await two.has(ended), await two.has(open)]).toEqual([true, false]);
  await two.add(over, Date.now() - 2 * 3_600_000);
  await one.add(open, inAnHour);
  const { rows } = await connections.pool.query<{ id: Buffer }>("SELECT id FROM ended_sessions");
  expect(rows.map(({ id }) => id.toString("hex")).sort()).toEqual([ended, open].map((id) => id.toString("hex")).sort());
});
