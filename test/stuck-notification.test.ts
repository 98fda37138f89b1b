import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { blocksOf } from "../scripts/sources/blocks.ts";
import { sale } from "./support/commands.ts";
import { createDatabase, withAdmin } from "./support/database.ts";
import { eventually, startTestService } from "./support/service.ts";

const page = readFileSync(join(import.meta.dirname, "../docs/internals/stuck-notification.md"), "utf8");
const statements = blocksOf(page).filter(({ language }) => language === "sql");

test("the page's statements find a notification that waits: its owner, its queue, its endpoint", async () => {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const service = await startTestService({ database });
  onTestFinished(() => service.stop());
  // By default a second attempt, and failure, comes after five seconds.
  const partner = await service.register({ retry: [3_600] });
  partner.server.answersAlways(503);
  const { id } = await partner.notify(sale());
  const [state, queue, circuit] = await withAdmin(database.url, (client) =>
    eventually("its first attempt to be recorded", async () => {
      const found: (readonly unknown[])[] = [];
      for (const { text } of statements) {
        const { rows } = await client.query(text.replaceAll("<notification id>", id));
        found.push(rows);
      }
      return found.at(-1)?.length === 0 ? undefined : found;
    }),
  );
  expect(statements).toHaveLength(3);
  expect(state).toMatchObject([{ partner_id: partner.id, host: expect.stringContaining(hostname()), follows: false }]);
  expect(queue).toMatchObject([{ id }]);
  expect(circuit).toMatchObject([{ kind: "origin", state: "closed", failures: 1, last_reason: "status" }]);
});
