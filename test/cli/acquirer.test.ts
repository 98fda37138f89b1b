import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import {
  encrypted,
  kek,
  keyMessage,
  registered,
  wireUnder,
  withExchange,
} from "../../packages/server/src/acquirer/iso8583/key-exchange.fixture.ts";
import { FakeHost } from "../../packages/server/src/acquirer/iso8583/link/fake-host.fixture.ts";
import { sale } from "../support/commands.ts";
import { queryHomes } from "../support/database.ts";
import { dumpRows } from "../support/rows.ts";
import { eventually, operatorToken, startTestService } from "../support/service.ts";
import { CommandLine } from "./command-line.ts";

const profile = readFileSync(join(import.meta.dirname, "../../docs/operator/acquirer-profile.json"), "utf8");
const masterKey = randomBytes(32);
const macKey = "0123456789abcdeffedcba9876543210";

const service = await startTestService({ masterKey });
const hosts: readonly FakeHost[] = [await FakeHost.listen(), await FakeHost.listen(), await FakeHost.listen()];
const partner = await service.register({ retry: [1] });
const line = new CommandLine({ PAYBELL_URL: service.baseUrl, PAYBELL_OPERATOR_TOKEN: operatorToken });
line.write("host.json", JSON.parse(profile));
line.write("mac.hex", macKey);
afterAll(async () => {
  line.remove();
  await service.stop();
  await Promise.all(hosts.map((host) => host.close()));
});

const ok = (...args: string[]) => line.ok(...args);

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
  const of = ["--partner", partner.id];
  const set = await ok("terminal", "set", "T0000077", "--mid", "M00000000000001", "--acquirer", "first-bank", ...of);
  expect(set.stdout).toBe("Terminal T0000077 belongs to M00000000000001. Its commands go to first-bank.\n");
  expect((await ok("terminal", "list", ...of)).stdout).toMatch(/^T0000077 +M00000000000001 +first-bank$/m);
  const sold = await partner.run(sale({ tid: "T0000077" }));
  expect(sold.body).toMatchObject({ status: "SUCCESS" });
  expect([heard(0), heard(1)]).toEqual([1, 0]);
  await ok("acquirer", "update", "first-bank", "--hosts", at(1), "--mac-key", "mac.hex");
  await signedOnAt(1);
  const again = await partner.run(sale({ tid: "T0000077" }));
  expect([heard(0), heard(1)]).toEqual([1, 1]);
  const metrics = await (await fetch(`${service.baseUrl}/metrics`)).text();
  expect(metrics).toContain('paybell_acquirer_links_in_use{acquirer="first-bank"} 1');
  expect((await ok("acquirer", "list")).stdout).toBe(
    `NAME        PROFILE       HOSTS\nfirst-bank  example-host  ${at(1)}\n`,
  );
  const shown = await ok("acquirer", "show", "first-bank");
  expect(shown.stdout).toContain("is set");
  const other = await partner.run(sale());
  const listed = async (acquirer: string) => {
    const { items } = (await ok("transaction", "list", "--acquirer", acquirer, "--json")).json<{
      items: { id: string }[];
    }>();
    return items.map(({ id }) => id);
  };
  expect(await listed("first-bank")).toEqual([again.body["id"], sold.body["id"]]);
  expect(await listed("default")).toEqual([other.body["id"]]);
  expect(await listed("never-registered")).toEqual([]);
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

/** A command that runs a part of the service beside it. */
const beside = (...args: string[]) =>
  line.run(args, {
    env: { DATABASE_URL: service.database.serviceUrl, PAYBELL_MASTER_KEY: masterKey.toString("base64") },
  });

test("a certification runs on a registered acquirer too, beside the service", async () => {
  const options = ["--mid", "M00000000000001", "--tid", "T0000078", "--token", "tok_approve", "--amount", "10000"];
  const [, host] = hosts as [FakeHost, FakeHost];
  const { answer } = host;
  host.answer = (request, socket) => {
    if (request.mti === "0500") socket.write(host.wire.write({ ...request, mti: "0420" }));
    return answer(request, socket);
  };
  const ended = await beside("acquirer", "test", "first-bank", ...options);
  expect(ended.code, ended.stderr).toBe(0);
  expect(ended.stdout).toMatch(/^ok {5}Sign-on +signed on at 127\.0\.0\.1:/m);
  host.answer = answer;
  expect(host.heard.filter(({ mti }) => mti === "0500" || mti === "0430")).toMatchObject([{ mti: "0500" }]);
  expect(ended.stdout).toMatch(/^ +ignored 127\.0\.0\.1:\d+: an advice of the host is not answered/m);
  const unknown = await beside("acquirer", "test", "nobody", ...options);
  expect(unknown.code).toBe(2);
  expect(unknown.stderr).toContain("no acquirer is registered as nobody");
});

test("paybell check goes through all registered acquirers", async () => {
  await ok("acquirer", "add", "away", "--profile", "host.json", "--hosts", "127.0.0.1:1", "--tls", "off");
  const checked = async () => {
    const { code, stderr, json } = await beside("check", "--json");
    expect(code, stderr).toBe(1);
    return json<{ findings: { what: string; level: string; detail: string }[] }>().findings;
  };
  expect((await checked()).filter(({ what }) => what.startsWith("acquirer"))).toMatchObject([
    { what: "acquirer", level: "warning" },
    { what: "acquirer away", level: "error", detail: expect.stringContaining("ECONNREFUSED") },
    { what: "acquirer first-bank", level: "ok", detail: expect.stringContaining(`signed on at ${at(1)}`) },
  ]);
  // A profile that an earlier version accepted stays, with an alert.
  const confused = JSON.stringify({ ...JSON.parse(profile), matchBy: [11] });
  await queryHomes(service.database, "UPDATE acquirers SET profile = $1 WHERE name = 'away'", [confused]);
  await ok("acquirer", "update", "away", "--hosts", "127.0.0.1:2");
  const problems = [expect.stringMatching(/^matchBy: no field of messages\.SALE .*\{tid\}/)];
  await expect
    .poll(async () => (await service.operator("GET", "/operator/v1/events?state=profile_ambiguous")).body["items"])
    .toMatchObject([{ detail: { acquirer: "away", problems: expect.arrayContaining(problems) } }]);
  expect(await checked()).toContainEqual(
    expect.objectContaining({ what: "acquirer away", level: "error", detail: problems[0] }),
  );
  await ok("acquirer", "remove", "away", "--yes");
});

test("each MAC key that comes over a link is an event, a metric, and in the acquirer's state", async () => {
  const [, , host] = hosts;
  if (host === undefined) throw new Error("three were started");
  host.wire = wireUnder(registered);
  line.write("keys.json", withExchange({ belongsTo: "acquirer" }));
  line.write("registered.hex", registered.toString("hex"));
  line.write("kek.hex", kek.toString("hex"));
  const files = ["--profile", "keys.json", "--mac-key", "registered.hex", "--key-encryption-key", "kek.hex"];
  await ok("acquirer", "add", "second-bank", "--hosts", at(2), "--tls", "off", ...files);
  const linkSays = (what: string) =>
    eventually(what, async () => {
      const { stdout } = await ok("acquirer", "show", "second-bank");
      return stdout.includes(what) ? true : undefined;
    });
  const seen = async (kind: string, result: string) => {
    const { body } = await service.operator("GET", `/operator/v1/events?state=${kind}`);
    const metrics = await (await fetch(`${service.baseUrl}/metrics`)).text();
    const count = `paybell_acquirer_mac_keys_total{acquirer="second-bank",result="${result}"} 1`;
    return { items: body["items"], isCounted: metrics.includes(count) };
  };
  await linkSays("under the registered MAC key");
  host.send(keyMessage("no key at all"));
  await linkSays("was refused: the message contains no key");
  await expect
    .poll(() => seen("mac_key_refused", "refused"))
    .toMatchObject({
      items: [{ detail: { acquirer: "second-bank", host: at(2), detail: "the message contains no key" } }],
      isCounted: true,
    });
  const key = Buffer.alloc(16, 2);
  host.wireAfterKey = wireUnder(key);
  host.send(keyMessage(encrypted(key)));
  await linkSays("under the MAC key that came at ");
  await expect
    .poll(() => seen("mac_key_taken", "taken"))
    .toMatchObject({
      items: [{ detail: { acquirer: "second-bank", host: at(2), detail: "sent by the host" } }],
      isCounted: true,
    });
  const { body } = await service.operator("GET", "/readyz");
  expect(JSON.stringify(body)).toMatch(/acquirer second-bank.*under the MAC key that came at/);
});
