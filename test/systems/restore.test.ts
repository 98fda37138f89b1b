import { randomBytes } from "node:crypto";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { CommandLine } from "../cli/command-line.ts";
import { sale } from "../support/commands.ts";
import { needs } from "../support/programs.ts";
import { eventually, notificationIdOf, operatorToken, startTestService, type TestPartner } from "../support/service.ts";
import {
  type ClusterFolder,
  initCluster,
  makeClusterFolder,
  type RunningCluster,
  startCluster,
} from "./postgres-cluster.ts";

const masterKey = randomBytes(32);

function onCluster(cluster: RunningCluster) {
  const url = cluster.url("paybell");
  return { database: { url, serviceUrl: url, drop: async () => undefined }, masterKey };
}

async function sell(partner: TestPartner, state: "accepted" | "pending"): Promise<string> {
  const { body, text, status } = await partner.run(sale());
  expect(status, text).toBe(200);
  const { id } = body["notification"] as { id: string };
  if (state === "accepted") await partner.settled(id, "accepted");
  return id;
}

/** The archive has all of the log that was written until now. */
async function archiveAll(cluster: RunningCluster): Promise<void> {
  // A segment to which nothing was written is not switched.
  await cluster.query("postgres", "SELECT pg_create_restore_point('drill')");
  const [row] = await cluster.query<{ segment: string }>(
    "postgres",
    "SELECT pg_walfile_name(pg_switch_wal()) AS segment",
  );
  await eventually("the log to be archived", async () => {
    const [found] = await cluster.query<{ last: string | null }>(
      "postgres",
      "SELECT last_archived_wal AS last FROM pg_stat_archiver",
    );
    return (found?.last ?? "") >= (row?.segment ?? "~") ? true : undefined;
  });
}

async function paybell(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const line = new CommandLine({ PATH: process.env["PATH"] ?? "", ...env });
  const { code, stdout, stderr } = await line.run(args).finally(() => line.remove());
  return { code, output: `${stdout}${stderr}` };
}

/** Until the test has finished. */
async function startOwnCluster(): Promise<{ readonly folder: ClusterFolder; readonly cluster: RunningCluster }> {
  const folder = await makeClusterFolder();
  onTestFinished(() => folder.remove());
  const cluster = await startCluster(folder, await initCluster(folder));
  onTestFinished(() => cluster.crash());
  await cluster.query("postgres", "CREATE DATABASE paybell");
  return { folder, cluster };
}

async function takeBackup(cluster: RunningCluster, folder: ClusterFolder): Promise<string> {
  const backups = join(folder.path, "backups");
  await cluster.query("postgres", "CREATE ROLE backup LOGIN REPLICATION PASSWORD 'a-password-of-the-drill'");
  const { code, output } = await paybell(["backup", backups, "--json"], {
    DATABASE_URL: cluster.url("paybell"),
    PAYBELL_BACKUP_DATABASE_URL: cluster.url("postgres", "backup"),
  });
  expect(code, output).toBe(0);
  const [name = "", ...others] = await readdir(backups);
  expect(others).toEqual([]);
  return join(backups, name);
}

test(
  "a restore to a point in time has everything up to it, and sends nothing again by itself",
  needs("postgres"),
  async () => {
    const { folder, cluster } = await startOwnCluster();
    const before = await startTestService(onCluster(cluster));
    onTestFinished(() => before.stop());
    const partner = await before.register({ retry: [5, 5, 5, 3_600] });
    const accepted = [await sell(partner, "accepted"), await sell(partner, "accepted")];

    const backup = await takeBackup(cluster, folder);
    accepted.push(await sell(partner, "accepted"));
    partner.server.answersAlways({ status: 503 });
    const held = [await sell(partner, "pending"), await sell(partner, "pending")];
    await partner.server.until((all) => held.every((id) => all.some((one) => notificationIdOf(one) === id)));
    await eventually("the failures to be recorded", async () => {
      const [row] = await cluster.query<{ count: string }>(
        "paybell",
        "SELECT count(*) FROM attempts WHERE reason <> ''",
      );
      return Number(row?.count) >= 2 ? true : undefined;
    });
    const [point] = await cluster.query<{ now: Date }>("postgres", "SELECT clock_timestamp() AS now");
    const to = new Date((point?.now.getTime() ?? 0) + 1).toISOString();

    // All of the following is lost: the partner accepts what was pending, and a Sale that only it and the acquirer
    // remember.
    partner.server.answersAlways({ status: 204 });
    for (const id of held) await partner.settled(id, "accepted");
    const lost = await sell(partner, "accepted");
    await archiveAll(cluster);
    await before.service.stop();
    await cluster.crash();

    const verified = await paybell(["verify", backup, "--wal", folder.archive]);
    expect(verified, verified.output).toEqual({
      code: 0,
      output: expect.stringMatching(/The archive has no gap: \d+ segments from 0{7}1[0-9A-F]{16} to 0{7}1/),
    });
    const into = await folder.make("restored");
    const restored = await paybell(["restore", backup, "--into", into, "--wal", folder.archive, "--to", to]);
    expect(restored.code, restored.output).toBe(0);

    const posted = partner.server.deliveries.length;
    const again = await startCluster(folder, into);
    onTestFinished(() => again.crash());
    const after = await startTestService(onCluster(again));
    onTestFinished(() => after.stop());
    const reborn = { ...partner, ...callsOf(partner, after.baseUrl) };
    for (const id of accepted) await reborn.settled(id, "accepted");
    expect((await reborn.call("GET", `/v1/notifications/${lost}`)).status).toBe(404);
    for (const id of held) expect(await reborn.settled(id, "parked")).toMatchObject({ lastReason: "restored" });
    // A new one leaves as ever: the partner's queue is free, and nothing else was in it.
    const fresh = await sell(reborn, "accepted");
    expect(partner.server.deliveries.slice(posted).map(notificationIdOf)).toEqual([fresh]);

    const line = new CommandLine({ PAYBELL_URL: after.baseUrl, PAYBELL_OPERATOR_TOKEN: operatorToken });
    onTestFinished(() => line.remove());
    const report = await line.run(["restore", "reconcile"]);
    expect(report.code, report.stderr).toBe(1);
    expect(report.stdout).toContain("held 2 notifications");
    expect(report.stdout).toMatch(/The ledger ends at \d{4}-/);
    expect(report.stdout).toContain(partner.id);
    const { body: events } = await after.operator("GET", "/operator/v1/events?state=restored");
    expect(events["items"]).toEqual([expect.objectContaining({ detail: expect.objectContaining({ held: 2 }) })]);

    const released = await line.run(["restore", "release", "--yes"]);
    expect(released, released.stderr).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("2 notifications are due"),
    });
    for (const id of held) await reborn.settled(id, "accepted");
    expect(new Set(partner.server.deliveries.slice(posted).map(notificationIdOf))).toEqual(new Set([fresh, ...held]));
    expect((await line.run(["restore", "reconcile"])).code).toBe(0);

    // To a later time, too, a second restore goes over to what the first has begun.
    await archiveAll(again);
    const second = ["--into", await folder.make("second"), "--wal", folder.archive];
    const told = await paybell(["restore", backup, ...second]);
    expect(told).toEqual({ code: 0, output: expect.stringContaining("began: 00000002. PostgreSQL goes over") });
    expect((await paybell(["verify", backup, "--wal", folder.archive])).output).toContain("began: 00000002.");
  },
);

test(
  "a backup that was tampered with, and an archive with a gap, are refused before anything is restored",
  needs("postgres"),
  async () => {
    const { folder, cluster } = await startOwnCluster();
    const nothing = await paybell(["backup", join(folder.path, "backups")], { DATABASE_URL: cluster.url("paybell") });
    expect(nothing).toEqual({ code: 1, output: expect.stringContaining("there is nothing to back up") });
    const service = await startTestService(onCluster(cluster));
    await service.stop();
    const backup = await takeBackup(cluster, folder);
    // The last but one was written after the backup.
    for (let nth = 0; nth < 3; nth += 1) await archiveAll(cluster);

    const into = await folder.make("restored");
    const restore = (...more: string[]) => paybell(["restore", backup, "--into", into, ...more]);
    const early = await restore("--wal", folder.archive, "--to", "2020-01-01T00:00:00Z");
    expect(early).toEqual({ code: 1, output: expect.stringContaining("Restore an earlier backup") });
    const segments = (await readdir(folder.archive)).filter((name) => /^[0-9A-F]{24}$/.test(name)).sort();
    await rm(join(folder.archive, segments.at(-2) ?? ""));
    const gap = await restore("--wal", folder.archive);
    expect(gap).toEqual({ code: 1, output: expect.stringContaining(`The archive lacks ${segments.at(-2)}`) });
    await writeFile(join(folder.archive, segments.at(-2) ?? ""), "its beginning");
    const cutOff = await restore("--wal", folder.archive);
    expect(cutOff).toEqual({ code: 1, output: expect.stringContaining(`The archive has cut off ${segments.at(-2)}`) });
    await writeFile(join(backup, "data", "PG_VERSION"), "99\n");
    const tampered = await restore();
    expect(tampered).toEqual({ code: 1, output: expect.stringContaining("PG_VERSION") });
    expect(await readdir(into)).toEqual([]);
    await writeFile(join(into, "kept"), "");
    await writeFile(join(backup, "data", "PG_VERSION"), "");
    expect((await restore()).code).toBe(1);
    expect(await readdir(into)).toEqual(["kept"]);
  },
);

function callsOf(partner: TestPartner, baseUrl: string): Pick<TestPartner, "call" | "run" | "settled"> {
  const call: TestPartner["call"] = async (method, path, how = {}) => {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${partner.secrets.apiKey}`,
        ...(how.json !== undefined && { "content-type": "application/json" }),
      },
      ...(how.json !== undefined && { body: JSON.stringify(how.json) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: JSON.parse(text) };
  };
  return {
    call,
    run: (command) => call("POST", "/v1/commands", { json: command }),
    settled: (id, state) =>
      eventually(`notification ${id} to be ${state}`, async () => {
        const { body } = await call("GET", `/v1/notifications/${id}`);
        return body["state"] === state ? body : undefined;
      }),
  };
}
