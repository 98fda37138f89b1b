import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FakeHost } from "../../packages/server/src/acquirer/iso8583/link/fake-host.fixture.ts";
import { sale } from "../support/commands.ts";
import { dumpRows } from "../support/rows.ts";
import {
  eventually,
  operatorToken,
  startTestService,
  type TestPartner,
  type WholeService,
} from "../support/service.ts";
import { CommandLine } from "./command-line.ts";

const profile = readFileSync(join(import.meta.dirname, "../../docs/operator/acquirer-profile.json"), "utf8");
const macKey = "0123456789abcdeffedcba9876543210";

let service: WholeService;
let partner: TestPartner;
let line: CommandLine;
let hosts: readonly FakeHost[];
beforeAll(async () => {
  service = await startTestService();
  hosts = [await FakeHost.listen(), await FakeHost.listen()];
  partner = await service.register({ retry: [1] });
  line = new CommandLine({ PAYBELL_URL: service.baseUrl, PAYBELL_OPERATOR_TOKEN: operatorToken });
  line.write("host.json", JSON.parse(profile));
  line.write("mac.hex", macKey);
});
afterAll(async () => {
  line.remove();
  await service.stop();
  await Promise.all(hosts.map((host) => host.close()));
});

async function ok(...args: string[]) {
  const ran = await line.run(args);
  expect(ran.code, ran.stderr).toBe(0);
  return ran;
}

const heard = (nth: number) => hosts[nth]?.heard.filter(({ mti }) => mti === "0200").length;
const at = (nth: number) => `127.0.0.1:${hosts[nth]?.port}`;

async function signedOnAt(nth: number): Promise<void> {
  await eventually(`the link to host ${nth}`, async () => {
    const { body } = await service.operator("GET", "/readyz");
    const checks = body["checks"] as Record<string, { detail: string }>;
    return checks["acquirer first-bank"]?.detail.startsWith(`iso8583: signed on at ${at(nth)}`) ? true : undefined;
  });
}

test("an acquirer is added, shown, used, changed while it is, and removed", async () => {
  await ok("acquirer", "add", "first-bank", "--profile", "host.json", "--hosts", at(0), "--tls", "off");
  await signedOnAt(0);
  expect((await line.run(["acquirer", "add", "first-bank"])).stderr).toContain("there is an acquirer first-bank");
  const terminal = `/operator/v1/partners/${partner.id}/terminals/T0000077`;
  const put = (acquirer: string) => service.operator("PUT", terminal, { mid: "M00000000000001", acquirer });
  expect((await put("nobody")).status).toBe(400);
  expect(await put("first-bank")).toMatchObject({ status: 200, body: { acquirer: "first-bank" } });
  const sold = await partner.run(sale({ tid: "T0000077" }));
  expect(sold.body).toMatchObject({ status: "SUCCESS" });
  expect([heard(0), heard(1)]).toEqual([1, 0]);
  await ok("acquirer", "update", "first-bank", "--hosts", at(1), "--mac-key", "mac.hex");
  await signedOnAt(1);
  await partner.run(sale({ tid: "T0000077" }));
  expect([heard(0), heard(1)]).toEqual([1, 1]);
  const metrics = await (await fetch(`${service.baseUrl}/metrics`)).text();
  expect(metrics).toContain('paybell_acquirer_links_in_use{acquirer="first-bank"} 1');
  expect((await ok("acquirer", "list")).stdout).toBe(`first-bank  example-host  ${at(1)}\n`);
  const shown = await ok("acquirer", "show", "first-bank");
  expect(shown.stdout).toContain("is set");
  const refused = await line.run(["acquirer", "remove", "first-bank", "--yes"]);
  expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining("in use")]);
});

test("its keys are in no row, no log, no answer and no entry of the audit", async () => {
  const { body } = await service.operator("GET", "/operator/v1/audit?action=putAcquirer");
  expect(body["items"]).toMatchObject([
    { subject: "first-bank", before: { hosts: [at(0)] }, after: { hosts: [at(1)], hasMacKey: true } },
    { subject: "first-bank", before: null, after: { hosts: [at(0)], hasMacKey: false } },
  ]);
  const json = (await ok("acquirer", "show", "first-bank", "--json")).stdout;
  const seen = [JSON.stringify(body), json, service.logged(), await dumpRows(service.database)].join("\n");
  expect(seen).not.toContain(macKey);
});
