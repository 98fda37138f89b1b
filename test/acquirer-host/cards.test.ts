import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import type { Instance } from "../support/instance.ts";
import { dumpRows } from "../support/rows.ts";
import { callHttp } from "../support/service.ts";
import { profile } from "./acquirer.fixture.ts";
import { type AtHost, startAtHost } from "./at-host.ts";
import { needsHost } from "./host.ts";

const needed = needsHost();

/** A host that wants the card in each message that follows its Sale. */
const { VOID, REVERSAL } = profile.messages;
const card = { "14": "{expDate}", "22": "{entryMode}", "48": "{cardToken}" };
const wanting = {
  ...profile,
  messages: {
    ...profile.messages,
    VOID: { ...VOID, fields: { ...VOID.fields, ...card } },
    REVERSAL: { ...REVERSAL, fields: { ...REVERSAL.fields, ...card } },
  },
};

describe("a host that wants cards again", needed, () => {
  let folder: string;
  let at: AtHost;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "paybell-cards-"));
    const path = join(folder, "profile.json");
    await writeFile(path, JSON.stringify(wanting));
    at = await startAtHost(1, { PAYBELL_ACQUIRER_PROFILE: path, PAYBELL_LOG_LEVEL: "trace" });
  });
  afterAll(async () => {
    await at.stop();
    await rm(folder, { recursive: true });
  });

  const instance = () => at.instances[0] as Instance;
  const run = (json: Readonly<Record<string, unknown>>, headers: Readonly<Record<string, string>> = {}) =>
    callHttp(instance().baseUrl, "POST", "/v1/commands", { key: at.partner.secrets.apiKey, json, headers });

  test("gets cards in a Void, and in the Reversal by an instance that never saw them, and nowhere else", async () => {
    const token = "tok_approve";
    const voided = await run(sale({ card: { token, expiry: "12/29" } }));
    expect(voided.body, voided.text).toMatchObject({ status: "SUCCESS" });
    const back = await run({ command: "VOID", reqId: crypto.randomUUID(), transactionId: voided.body["id"] });
    expect(back.body, back.text).toMatchObject({ status: "SUCCESS" });
    await run(sale({ amount: "70000", card: { token: "tok_timeout", expiry: "2031-08" } }), {
      prefer: "respond-async",
    });
    await expect.poll(() => at.host.order("books")).toEqual([expect.stringMatching(/SALE 7000000 00 stands/)]);
    const before = await at.replace(0);
    await expect
      .poll(() => at.host.order("cards"), { interval: 200 })
      .toEqual([`card 0200 2912 051 ${token}`, "card 0400 3108 051 tok_timeout"]);
    const rows = await dumpRows(at.database);
    expect(rows).toMatch(/^cards /m);
    for (const text of [rows, before, instance().output()]) expect(text).not.toMatch(/tok_|746f6b5f/);
  });
});
