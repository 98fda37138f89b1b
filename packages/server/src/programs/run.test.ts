import { randomBytes } from "node:crypto";
import dns from "node:dns";
import { EventEmitter, once } from "node:events";
import { readFile, stat, symlink } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Writable } from "node:stream";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { connectionsTo } from "../../../../test/support/connections.ts";
import { createDatabase, withAdmin } from "../../../../test/support/database.ts";
import { freePort } from "../../../../test/support/ports.ts";
import { temporaryFolder } from "../../../../test/support/temporary.ts";
import { runProgram } from "../backups/programs.ts";
import { appendTo } from "../operators/audit.ts";
import { MasterKey, requireFittingMasterKey } from "../partners/master-key.ts";
import { PostgresAudit } from "../store/operators/audit.ts";
import { postgresPartners } from "../store/partners/partners.ts";
import { runAcquirerTest } from "./acquirer-test.ts";
import { runBackup } from "./backup.ts";
import {
  type RunContext,
  runAuditExport,
  runAuditVerify,
  runCheck,
  runMasterKeyRotate,
  runMigrate,
  runServe,
} from "./run.ts";

/** A name with an address of each family; at neither is anything listening. */
const dualHost = "dual.test";

beforeEach(() => {
  const { lookup } = dns;
  vi.spyOn(dns, "lookup").mockImplementation(((host: string, options: object, done: (...found: unknown[]) => void) => {
    const addresses = [
      { address: "::1", family: 6 },
      { address: "127.0.0.1", family: 4 },
    ];
    if (host === dualHost) process.nextTick(() => done(null, addresses));
    else lookup(host, options, done as never);
  }) as never);
});
afterEach(() => vi.restoreAllMocks());

/** A process of these settings, which keeps what is printed. */
function processOf(env: Readonly<Record<string, string>>) {
  let text = "";
  const waits: (() => void)[] = [];
  const stream = () =>
    new Writable({
      write(chunk, _, done) {
        text += String(chunk);
        done();
        for (const look of waits) look();
      },
    });
  const made = Object.assign(new EventEmitter(), { argv: [], stdout: stream(), stderr: stream(), env });
  const process = made as unknown as NodeJS.Process;
  const prints = (part: string) =>
    new Promise<void>((resolve) => waits.push(() => void (text.includes(part) && resolve())));
  return { process, printed: () => text, prints, signal: (name: NodeJS.Signals) => made.emit(name, name) };
}

/** A PostgreSQL that lets a client in, and answers nothing. */
async function frozenDatabase(): Promise<{ readonly url: string; readonly asked: Promise<void> }> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const sockets = new Set<Socket>();
  const authenticated = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5a, 0, 0, 0, 5, 0x49]);
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.write(authenticated);
      socket.once("data", () => resolve());
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await once(server.close(), "close");
  });
  return { url: `postgres://u:p@127.0.0.1:${(server.address() as AddressInfo).port}/d`, asked: promise };
}

const refused = /connect E\w+ (::1|127\.0\.0\.1):9\b/;
const databaseUrl = `postgres://paybell:p@${dualHost}:9/paybell`;

test("a database that is reached at none of its addresses is reported with a reason", async () => {
  const migrated = processOf({ DATABASE_URL: databaseUrl });
  expect(await runMigrate(migrated, { json: false })).toBe(1);
  expect(migrated.printed()).toMatch(refused);
  const checked = processOf({ DATABASE_URL: databaseUrl });
  expect(await runCheck(checked, { json: false })).toBe(1);
  expect(checked.printed()).toMatch(new RegExp(`cannot be reached: ${refused.source}`));
});

test("an acquirer test says why the registered acquirers cannot be read", async () => {
  const tested = processOf({ DATABASE_URL: databaseUrl, PAYBELL_MASTER_KEY: Buffer.alloc(32, 1).toString("base64") });
  const options = {
    name: "bank",
    mid: "1",
    tid: "2",
    token: "tok",
    amount: "1000",
    currency: "VND",
    batch: "000001",
    trace: "1",
  };
  expect(await runAcquirerTest(tested, { ...options, json: false })).toBe(2);
  expect(tested.printed()).toMatch(refused);
});

const masterKey = Buffer.alloc(32, 1).toString("base64");

test("one role for the schema and the service is warned of: at each start, and by check; two are not", async () => {
  const stored = await createDatabase();
  onTestFinished(() => stored.drop());
  const home = temporaryFolder();
  const tokens = new Set<string>();
  for (const [url, warns] of [
    [stored.url, true],
    [stored.url, true],
    [stored.serviceUrl, false],
  ] as const) {
    const ports = { PAYBELL_PORT: String(await freePort()), PAYBELL_OPERATOR_PORT: String(await freePort()) };
    const owner = { PAYBELL_MIGRATION_DATABASE_URL: stored.url };
    const env = { ...ports, ...owner, DATABASE_URL: url, PAYBELL_MASTER_KEY: masterKey, PAYBELL_HOME: home };
    const served = processOf(env);
    const ended = runServe(served);
    await Promise.race([served.prints('"msg":"ready"'), ended]);
    served.signal("SIGTERM");
    expect(await ended, served.printed()).toBe(0);
    tokens.add(await readFile(join(home, "operator.token"), "utf8"));
    expect(served.printed().includes("this role may change the schema")).toBe(warns);

    const checked = processOf(env);
    await runCheck(checked, { json: true });
    const { findings } = JSON.parse(checked.printed()) as { findings: { what: string; level: string }[] };
    expect(findings.find(({ what }) => what === "permission")).toMatchObject({ level: warns ? "warning" : "ok" });
  }
  // The operator's token is made once, and kept.
  expect([...tokens]).toEqual([expect.stringMatching(/^[\w-]{43}\n$/)]);
  expect(((await stat(join(home, "operator.token"))).mode & 0o777).toString(8)).toBe("600");
  const role = await withAdmin(stored.serviceUrl, async (service) => {
    return (await service.query<{ role: string }>("SELECT current_user AS role")).rows[0]?.role;
  });
  await withAdmin(stored.url, (owner) => owner.query(`GRANT UPDATE ON notifications TO ${role}`));
  const checked = processOf({ DATABASE_URL: stored.serviceUrl, PAYBELL_MASTER_KEY: masterKey, PAYBELL_HOME: home });
  await runCheck(checked, { json: false });
  expect(checked.printed()).toContain("this role may change more than the service does, of notifications");
  // The tests' PostgreSQL runs so.
  expect(checked.printed()).toMatch(/^ERROR {4}fsync +is off: an accepted command can be lost$/m);
  expect(checked.printed()).toMatch(/^ok {7}master key +fits this database$/m);
  const otherKey = Buffer.alloc(32, 2).toString("base64");
  const wrong = processOf({ DATABASE_URL: stored.serviceUrl, PAYBELL_MASTER_KEY: otherKey, PAYBELL_HOME: home });
  expect(await runCheck(wrong, { json: false })).toBe(1);
  expect(wrong.printed()).toMatch(/^ERROR {4}master key +does not fit this database$/m);
});

test("partners and operators do not share a port", async () => {
  const ports = { PAYBELL_PORT: String(await freePort()) };
  const env = { ...ports, PAYBELL_OPERATOR_PORT: ports.PAYBELL_PORT, PAYBELL_MASTER_KEY: masterKey };
  const served = processOf({ ...env, DATABASE_URL: databaseUrl });
  expect(await runServe(served)).toBe(1);
  expect(served.printed()).toContain("PAYBELL_OPERATOR_PORT must differ from PAYBELL_PORT");
});

test("a start that hangs ends at the second signal", async () => {
  const { url, asked } = await frozenDatabase();
  const home = temporaryFolder();
  const ports = { PAYBELL_PORT: String(await freePort()), PAYBELL_OPERATOR_PORT: String(await freePort()) };
  const env = { ...ports, DATABASE_URL: url, PAYBELL_MASTER_KEY: masterKey, PAYBELL_HOME: home };
  const served = processOf(env);
  const ended = runServe(served);
  await asked;
  served.signal("SIGTERM");
  served.signal("SIGINT");
  expect(await ended).toBe(0);
  expect(served.printed()).toContain("stopped before it was ready");
});

test("an operator token that cannot be read is not replaced", async () => {
  const { url, asked } = await frozenDatabase();
  const home = temporaryFolder();
  await symlink("operator.token", join(home, "operator.token"));
  const ports = { PAYBELL_PORT: String(await freePort()), PAYBELL_OPERATOR_PORT: String(await freePort()) };
  const served = processOf({ ...ports, DATABASE_URL: url, PAYBELL_MASTER_KEY: masterKey, PAYBELL_HOME: home });
  expect(await Promise.race([runServe(served), asked])).toBe(1);
  expect(served.printed()).toContain(`${join(home, "operator.token")} cannot be read: ELOOP`);
});

test.each([
  ["migrate", (context: RunContext) => runMigrate(context, { json: false })],
  ["check", (context: RunContext) => runCheck(context, { json: false })],
  ["audit verify", (context: RunContext) => runAuditVerify(context, { json: false })],
  ["backup", (context: RunContext) => runBackup(context, { folder: "/nowhere", json: false })],
])("%s ends at a signal, and says nothing more", async (_, run) => {
  const { url, asked } = await frozenDatabase();
  const command = processOf({ DATABASE_URL: url, PAYBELL_MASTER_KEY: masterKey });
  const ended = run(command);
  await asked;
  command.signal("SIGINT");
  expect(await ended).toBe(130);
  expect(command.printed()).toBe("");
});

test("a rotation of the master key says that the others can be removed once nothing is under them", async () => {
  const stored = await createDatabase();
  onTestFinished(() => stored.drop());
  const keys = Array.from({ length: 3 }, () => randomBytes(32).toString("base64"));
  const [old = "", lost = "", next = ""] = keys;
  const database = connectionsTo(stored.url, 2);
  const store = postgresPartners(database);
  await requireFittingMasterKey(MasterKey.parse(old), store);
  await store.storeSealed("of a test", MasterKey.parse(lost).sealNamed(Buffer.from("a secret"), "of a test"));
  await database.close();
  const rotate = async (others: string) => {
    const env = { DATABASE_URL: stored.url, PAYBELL_MASTER_KEY: next, PAYBELL_MASTER_KEY_OTHERS: others };
    const rotating = processOf(env);
    return [await runMasterKeyRotate(rotating, { json: false }), rotating.printed()];
  };
  const isLeft = "1 keys are encrypted under another master key: add it to PAYBELL_MASTER_KEY_OTHERS.\n";
  expect(await rotate(old)).toEqual([1, isLeft]);
  const isDone = "Every key is encrypted under this master key (0 now): PAYBELL_MASTER_KEY_OTHERS can be removed.\n";
  expect(await rotate(`${old},${lost}`)).toEqual([0, isDone]);
});

test("a program of PostgreSQL's gets no secret of ours, and ends with the command that called it", async () => {
  const folder = temporaryFolder();
  const stop = new AbortController();
  const script = `env > ${folder}/env; echo $$ > ${folder}/pid; exec sleep 60`;
  const env = { ...process.env, DATABASE_URL: "a secret", PAYBELL_MASTER_KEY: "a secret" };
  const ended = runProgram("/bin/sh", ["-c", script], env, stop.signal).catch((error: unknown) => error);
  await expect.poll(async () => Number(await readFile(join(folder, "pid"), "utf8"))).toBeGreaterThan(0);
  expect(await readFile(join(folder, "env"), "utf8")).not.toContain("a secret");
  stop.abort();
  expect(await ended).toBeInstanceOf(Error);
  const pid = Number(await readFile(join(folder, "pid"), "utf8"));
  expect(() => process.kill(pid, 0)).toThrow("ESRCH");
});

test("an export of the audit that follows it writes each entry once, and one that cannot be written fails", async () => {
  const stored = await createDatabase();
  onTestFinished(() => stored.drop());
  const database = connectionsTo(stored.url, 4);
  const texts = { action: "test", subject: "", before: "", after: "", actor: "a", role: "admin", tokenId: "" };
  const append = () => appendTo(new PostgresAudit(database.pool), { atMs: Date.now(), address: "", ...texts });
  await append();
  const follower = processOf({ DATABASE_URL: stored.url });
  const [first, second] = [follower.prints('"seq":1,'), follower.prints('"seq":2,')];
  const reads = vi.spyOn(PostgresAudit.prototype, "following");
  const ended = runAuditExport(follower, { format: "json-lines", after: 0, follow: true });
  await first;
  // It has found nothing more: what is added now is read by the next look.
  await expect.poll(() => reads.mock.settledResults.map(({ value }) => value)).toContainEqual([]);
  await append();
  await second;
  follower.signal("SIGINT");
  expect(await ended).toBe(0);
  expect(follower.printed().match(/"seq":\d+/g)).toEqual(['"seq":1', '"seq":2']);
  await database.close();
  const verified = processOf({ DATABASE_URL: stored.url });
  expect(await runAuditVerify(verified, { json: false, expect: { seq: 2, hash: "another" } })).toBe(1);
  expect(verified.printed()).toBe("Entry 2 is not there with the expected hash: the audit was cut off or replaced.\n");
  const exported = processOf({ DATABASE_URL: stored.url });
  const full = new Writable({ write: (_, __, done) => done(new Error("ENOSPC: no space left on device, write")) });
  const process = Object.assign(exported.process, { stdout: full });
  expect(await runAuditExport({ process }, { format: "json-lines", after: 0, follow: false })).toBe(1);
  expect(exported.printed()).toBe("paybell: the output cannot be written: ENOSPC: no space left on device, write\n");
});
