import { readFile, stat } from "node:fs/promises";
import { PostgresStartError } from "./start-error.ts";
import { type Account, runTool } from "./tool.ts";

/**
 * PostgreSQL refuses to run as root: then it runs as the owner of existing data, otherwise as `postgres`, otherwise as
 * `nobody`. Undefined means "as ourselves".
 */
export async function postgresAccount(dataDirectory: string, passwdFile = "/etc/passwd"): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const owner = await stat(dataDirectory).catch(() => undefined);
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const passwd = await readFile(passwdFile, "utf8").catch(() => "");
  const account = entry(passwd, "postgres") ?? entry(passwd, "nobody");
  if (account !== undefined) return account;
  throw new PostgresStartError(
    "account_unusable",
    "PostgreSQL does not run as root, and this system has neither a user `postgres` nor `nobody`.",
    "Run Paybell as an ordinary user, or create one: useradd --system postgres.",
  );
}

/** Tested by the system itself, as that user: permission bits do not cover access lists or remote disks. */
export async function canEnter(account: Account | undefined, directory: string): Promise<boolean> {
  if (account === undefined) return true;
  const result = await runTool("/bin/sh", ["-c", 'test -x "$1"', "sh", directory], account);
  return result.exitCode === 0;
}

function entry(passwd: string, name: string): Account | undefined {
  const fields = passwd
    .split("\n")
    .map((line) => line.split(":"))
    .find(([user]) => user === name);
  const [uid, gid] = [Number(fields?.[2]), Number(fields?.[3])];
  return fields !== undefined && Number.isSafeInteger(uid) && Number.isSafeInteger(gid) && uid !== 0
    ? { uid, gid }
    : undefined;
}
