import { expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { lockWaits } from "../../../../../test/support/locks.ts";
import { completeTerminal } from "../../partners/terminal.ts";
import { createHistory, insertPartner } from "../rows.fixture.ts";
import { PostgresTerminals } from "./terminals.ts";

const connections = await openTestDatabase();
await createHistory(connections.pool);
const terminals = new PostgresTerminals(connections.homes);

test("a registration that meets the terminal's first command leaves its mid as the command has it", async () => {
  const partnerId = await insertPartner(connections.pool);
  const command = await connections.pool.connect();
  await command.query("BEGIN");
  const insert = "INSERT INTO terminals (partner_id, tid, mid, batch_closing) VALUES ($1, 'T1', 'M1', true)";
  await command.query(insert, [partnerId]);
  const put = (mid: string) => terminals.upsert(partnerId, completeTerminal("T1", { mid, appName: "app" }), 30);
  const other = put("M2");
  await lockWaits(connections.pool);
  await command.query("COMMIT");
  command.release();
  expect(await other).toEqual({ outcome: "busy" });
  expect(await put("M1")).toMatchObject({ outcome: "put", terminal: { mid: "M1", appName: "app" } });
});
