import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import { eventually, operatorToken, startTestService } from "../support/service.ts";
import { CommandLine } from "./command-line.ts";

const service = await startTestService();
const partner = await service.register();
const line = new CommandLine({ PAYBELL_URL: service.baseUrl, PAYBELL_OPERATOR_TOKEN: operatorToken });
line.write("partner.json", { baseUrl: service.baseUrl, partnerId: partner.id, ...partner.secrets });
afterAll(async () => {
  line.remove();
  await service.stop();
});

async function ok(...args: string[]) {
  const ran = await line.run(args);
  expect(ran.code, ran.stderr).toBe(0);
  return ran;
}

test("a partner's statement of a day is printed, or written as CSV", async () => {
  const { body } = await partner.run(sale({ merchantTransId: "order-7" }));
  const date = String(body["createdAt"]).slice(0, 10);
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
