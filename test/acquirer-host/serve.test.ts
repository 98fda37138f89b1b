import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import type { Instance } from "../support/instance.ts";
import { ipnOf } from "../support/receiver.ts";
import { dumpRows } from "../support/rows.ts";
import { callHttp } from "../support/service.ts";
import { type AtHost, startAtHost } from "./at-host.ts";
import { needsHost } from "./host.ts";

const needed = needsHost();

describe("the service on a host of ISO 8583", needed, () => {
  let at: AtHost;
  beforeAll(async () => {
    at = await startAtHost(1, { PAYBELL_LOG_LEVEL: "trace" });
  });
  afterAll(() => at.stop());
  const instance = () => at.instances[0] as Instance;
  const run = (json: Readonly<Record<string, unknown>>, headers: Readonly<Record<string, string>> = {}) =>
    callHttp(instance().baseUrl, "POST", "/v1/commands", { key: at.partner.secrets.apiKey, json, headers });
  const settlement = (reqId: string) => run({ command: "SETTLEMENT", reqId, tid: "T0000001", mid: "M00000000000001" });
  const eventsOf = async (id: string) => {
    const rows = (await dumpRows(at.database)).split("\n");
    return rows.filter((row) => row.startsWith("events ") && row.includes(id)).join();
  };
  const fresh = () => crypto.randomUUID();

  test("runs a Sale, its Void and a settlement on the host's books, and notifies of each", async () => {
    const [voided, kept] = [await run(sale()), await run(sale({ amount: "90000" }))];
    expect(voided.body, voided.text).toMatchObject({ status: "SUCCESS", isoResponseCode: "00" });
    expect(voided.body["approveCode"]).toMatch(/^[0-9A-F]{6}$/);
    const declined = await run(sale({ card: { token: "tok_decline_51" } }));
    expect(declined.body, declined.text).toMatchObject({ status: "ERROR", isoResponseCode: "51" });
    const back = await run({ command: "VOID", reqId: fresh(), transactionId: voided.body["id"] });
    expect(back.body, back.text).toMatchObject({ status: "SUCCESS", isoResponseCode: "00" });
    const settled = await settlement(fresh());
    expect(settled.body, settled.text).toMatchObject({
      ...{ status: "SUCCESS", saleQuantity: "2", voidQuantity: "1" },
      settlementDate: "0201",
    });
    const { body: shown } = await instance().operator("GET", `/operator/v1/transactions/${settled.body["id"]}`);
    expect(shown).toMatchObject({ settlementDate: "0201", acquirer: "" });
    const ipns = (await at.partner.server.next(5)).map(ipnOf);
    // There is no order between chains.
    const statuses = ipns.map((ipn) => String(ipn?.["status"])).sort();
    expect(statuses).toEqual(["ERROR", "SUCCESS", "SUCCESS", "SUCCESS", "SUCCESS"]);
    expect(kept.body["refId"]).toMatch(/^\d{12}$/);
  });

  test("keeps the host's own totals with the event of a mismatch", async () => {
    await run(sale({ amount: "40000" }));
    await at.host.order("totals 1");
    const refused = await settlement(fresh());
    await at.host.order("totals 0");
    expect(refused.body, refused.text).toMatchObject({ status: "ERROR", isoResponseCode: "95" });
    const mismatch = `00000${"4000000".padStart(14, "0")}${"0".repeat(38)}`;
    await expect.poll(() => eventsOf(String(refused.body["id"]))).toContain(mismatch);
    expect((await settlement(fresh())).body).toMatchObject({ status: "SUCCESS" });
  });

  test("says in /readyz at which host it is signed on", async () => {
    const { body } = await instance().operator("GET", "/readyz");
    expect(JSON.stringify(body)).toContain(`iso8583, example-host: signed on at 127.0.0.1:${at.host.port}`);
  });

  test("refuses a card token that is a card number", async () => {
    const refused = await run(sale({ card: { token: "4111111111111111" } }));
    expect(refused.status).toBe(400);
    expect(refused.text).not.toContain("4111111111111111");
  });

  test("reverses on the host's books what it was killed in the middle of", async () => {
    await at.host.order("forget");
    const command = sale({ card: { token: "tok_timeout" }, amount: "70000" });
    const begun = await run(command, { prefer: "respond-async" });
    expect(begun).toMatchObject({ status: 202, body: { status: "INIT" } });
    await expect.poll(() => at.host.order("books")).toEqual([expect.stringContaining("SALE 7000000 00 stands")]);
    await at.replace(0);
    await expect
      .poll(() => at.host.order("books"), { interval: 200 })
      .toEqual([expect.stringContaining("SALE 7000000 00 reversed")]);
    const again = await run(command);
    expect(again.body, again.text).toMatchObject({ status: "ERROR", isoResponseCode: "96" });

    // The host answers the Sale late, to an instance that never sent it.
    await at.host.order("deliver");
    await expect.poll(() => eventsOf(String(begun.body["id"]))).toContain("late_approval");
    const repeated = '"MTI  0401"';
    await instance().said((line) => line.includes(repeated) || undefined);
    expect(instance().output()).not.toContain("tok_");
    const settled = await settlement(fresh());
    expect(settled.body, settled.text).toMatchObject({ status: "SUCCESS", saleQuantity: "0" });
  });
});
