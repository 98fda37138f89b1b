import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { FakeHost } from "../../packages/server/src/acquirer/iso8583/link/fake-host.fixture.ts";
import { sale } from "../support/commands.ts";
import { steadyDayOf, steadyTimeZone } from "../support/days.ts";
import { lateTerminal, registerBank, settledLate } from "../support/late-settlement.ts";
import { eventually, operatorToken, serviceOfFile } from "../support/service.ts";
import { CommandLine } from "./command-line.ts";

const service = await serviceOfFile();
const partner = await service.register({ timeZone: steadyTimeZone });
const line = new CommandLine({ PAYBELL_URL: service.baseUrl, PAYBELL_OPERATOR_TOKEN: operatorToken });
line.write("partner.json", { baseUrl: service.baseUrl, partnerId: partner.id, ...partner.secrets });
afterAll(() => line.remove());

const ok = (...args: string[]) => line.ok(...args);

test("a partner's statement of a day is printed, or written as CSV", async () => {
  const { body } = await partner.run(sale({ merchantTransId: "order-7" }));
  const date = steadyDayOf(String(body["createdAt"]));
  const own = ["--credentials", "partner.json"];
  const printed = await ok("statement", "day", date, ...own);
  expect(printed.stdout).toContain("order-7");
  expect(printed.stdout).toContain("The day is not over");
  const csv = await ok("statement", "day", date, "--csv", ...own);
  expect(csv.stdout.split("\r\n")[1]).toContain(String(body["id"]));
  expect((await ok("statement", "batches", ...own)).stdout).toBe("None.\n");
  expect((await ok("statement", "settlements", "--json", ...own)).json<{ items: [] }>()).toEqual({ items: [] });
});

test("a clearing file is sent, its exceptions are listed, and one is resolved", async () => {
  const profile = JSON.parse(
    await readFile(join(import.meta.dirname, "../../docs/operator/acquirer-profile.json"), "utf8"),
  ) as Readonly<Record<string, unknown>>;
  const clearing = { format: "csv", currency: "VND", columns: { refId: 1, amount: 2, date: 3 }, daysMax: 0 };
  const registered = await service.operator("PUT", "/operator/v1/acquirers/bank", {
    profile: { ...profile, mac: null, clearing },
    hosts: ["127.0.0.1:9"],
    tls: "off",
  });
  expect(registered.status, registered.text).toBeLessThan(300);
  line.write("bad.csv", "123456789012,none,20261120\n");
  const bad = await line.run(["clearing", "send", "bad.csv", "--acquirer", "bank"]);
  expect([bad.code, bad.stderr]).toEqual([3, expect.stringContaining("line 1, column amount")]);
  line.write("day.csv", "123456789012,1000,20261120\n");
  const { id } = (await ok("clearing", "send", "day.csv", "--acquirer", "bank", "--json")).json<{ id: string }>();
  await eventually("the file to be matched", async () =>
    (await ok("clearing", "show", id, "--json")).json<{ state: string }>().state === "done" ? true : undefined,
  );
  expect((await ok("clearing", "files")).stdout).toContain("day.csv");
  const listed = await ok("clearing", "exceptions", "--state", "open", "--json");
  const [exception] = listed.json<{ items: { id: string; kind: string }[] }>().items;
  expect(exception?.kind).toBe("missing_here");
  expect((await ok("clearing", "exceptions")).stdout).toContain("123456789012");
  await ok("clearing", "resolve", exception?.id ?? "", "--reason", "a test file", "--yes");
  expect((await ok("clearing", "exceptions", "--state", "open")).stdout).toBe("None.\n");
  const missing = await line.run(["clearing", "send", "nothing.csv", "--acquirer", "bank"]);
  expect(missing.stderr).toContain("there is no such file");
});

test("a settlement that the acquirer accepts after its abort holds back the next ones until it is resolved", async () => {
  const host = await FakeHost.listen();
  onTestFinished(() => host.close());
  await registerBank(service, host, partner);
  const id = await settledLate(service, host, partner);
  const settle = async (command = "SETTLEMENT") => await partner.run({ command, reqId: randomUUID(), ...lateTerminal });
  for (const command of ["SETTLEMENT", "BATCH_UPLOAD"]) {
    expect(await settle(command)).toMatchObject({ status: 409, body: { code: "settlement_in_doubt" } });
  }

  const [event] = (await ok("event", "list", "--state", "settlement_late", "--json")).json<{
    items: { subjectId: string; detail: object }[];
  }>().items;
  const totals = { saleQuantity: 1, saleTotalMinor: "150000" };
  const detail = { tid: lateTerminal.tid, batchNo: "000001", batch: "in_doubt", responseCode: "00", totals };
  expect(event).toMatchObject({ subjectId: id, detail });
  const shown = await ok("settlement", "show", id);
  expect(shown.stdout).toMatch(/acceptedLate\s+in_doubt/);
  expect(shown.stdout).toMatch(/isoResponseCode\s+96/);

  const path = `/operator/v1/settlements/${id}/resolve`;
  expect(await service.operator("POST", path, {})).toMatchObject({
    status: 400,
    body: { errors: [{ field: "reason" }] },
  });
  const refused = await service.operator("POST", path, { reason: "card 4111111111111111" });
  expect(refused).toMatchObject({ status: 400, body: { code: "card_number_in_clear" } });
  const withoutReason = await line.run(["settlement", "resolve", id, "--yes"]);
  expect([withoutReason.code, withoutReason.stderr]).toEqual([2, expect.stringContaining("--reason")]);
  const reason = "the bank settled the first Sale; the other is in its next batch";
  const resolved = await ok("settlement", "resolve", id, "--reason", reason, "--yes");
  expect(resolved.stdout).toBe(`The settlement ${id} is resolved; the next settlement asks the acquirer.\n`);
  expect((await ok("settlement", "show", id)).stdout).not.toContain("in_doubt");
  const again = await line.run(["settlement", "resolve", id, "--reason", reason, "--yes"]);
  expect([again.code, again.stderr]).toEqual([3, expect.stringContaining("The settlement is not in doubt")]);
  const { body: audit } = await service.operator("GET", `/operator/v1/audit?subject=${id}`);
  expect(JSON.stringify(audit)).toContain(reason);
  await eventually("the event", async () => {
    const { body } = await service.operator("GET", `/operator/v1/events?subject=${id}&state=settlement_resolved`);
    return (body["items"] as { detail: object }[])[0];
  });

  const asked = host.heard.length;
  expect(await settle()).toMatchObject({
    status: 200,
    body: { status: "SUCCESS", batchNo: "000001", saleQuantity: "2" },
  });
  const heard = host.heard.slice(asked).filter(({ mti }) => mti !== "0800");
  expect(heard.map(({ mti }) => mti)).toEqual(["0500"]);
});
