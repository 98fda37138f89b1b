import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";

const run = promisify(execFile);
const programs = process.env["PG_BIN"] ?? "/usr/lib/postgresql/15/bin";

/** Debian's packages that compiling needs. None is installed here. */
const packages = [
  "gcc make flex postgresql-15 postgresql-server-dev-15 liblz4-dev libzstd-dev libssl-dev libkrb5-dev",
  "libxml2-dev libpam0g-dev libreadline-dev libselinux1-dev libxslt1-dev",
].flatMap((line) => line.split(" "));

/** Newer releases of PostgreSQL 15 export a function of this name, and Citus 13.1 to 13.2.2 define one of their own. */
const ownFunction = "have_createdb_privilege";
const filesWithIt = [
  "src/include/pg_version_compat.h",
  "src/backend/distributed/commands/serialize_distributed_ddls.c",
];

// `npm run citus:build -- <source> [--into <folder>]`: compiles Citus from a copy of its source for PostgreSQL 15, and
// installs it, under another root with --into. Exit code 2 if something is missing.
async function main(args: readonly string[]): Promise<number> {
  const { positionals, values } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { into: { type: "string" } },
  });
  const problem = await problemOf(positionals);
  if (problem !== undefined) {
    process.stderr.write(`${problem}\n`);
    return 2;
  }
  const folder = await mkdtemp(join(tmpdir(), "paybell-citus-build-"));
  try {
    await prepare(resolve(positionals[0] ?? ""), folder);
    const root = values.into === undefined ? [] : [`DESTDIR=${resolve(values.into)}`];
    // Without libcurl, which reports each installation to the makers of Citus, and without bitcode, which needs clang.
    const steps = [
      ["./configure", "--quiet", "--without-libcurl", `PG_CONFIG=${join(programs, "pg_config")}`],
      ["make", "-s", `-j${availableParallelism()}`, "with_llvm=no", "all"],
      ["make", "-s", "with_llvm=no", ...root, "install-all"],
    ];
    for (const [command = "", ...given] of steps) {
      process.stderr.write(`${command} ${given.join(" ")}\n`);
      const child = spawn(command, given, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
      const [code] = await once(child, "exit");
      if (code !== 0) return 1;
    }
    process.stderr.write("Citus is installed.\n");
    return 0;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function problemOf([source, ...others]: readonly string[]): Promise<string | undefined> {
  if (source === undefined || others.length > 0) return "Name one folder: npm run citus:build -- <source of Citus>";
  const script = await readFile(join(source, "configure.ac"), "utf8").catch(() => undefined);
  const isCitus = await stat(join(source, "src/backend/distributed/citus.control")).catch(() => undefined);
  if (script === undefined || isCitus === undefined) return `${source} has no source of Citus: check out a release.`;
  if (!script.includes("!= '15'")) {
    return "This release of Citus does not compile for PostgreSQL 15: check out one of 12.1 to 13.2.";
  }
  const { stdout } = await run("dpkg", ["--get-selections", ...packages]).catch(() => ({ stdout: "" }));
  const installed = stdout.split("\n").filter((line) => line.endsWith("\tinstall"));
  const missing = packages.filter((name) => !installed.some((line) => /^[^\t:]+/.exec(line)?.[0] === name));
  return missing.length === 0 ? undefined : `Install Debian's packages: ${missing.join(" ")}`;
}

/** A copy, so that the source stays as it was. */
async function prepare(source: string, folder: string): Promise<void> {
  await cp(source, folder, { recursive: true, filter: (path) => !path.endsWith("/.git") });
  // make would run autoreconf for a script that seems older than its source.
  await utimes(join(folder, "configure"), new Date(), new Date());
  const { stdout } = await run(join(programs, "pg_config"), ["--includedir-server"]);
  const declared = await readFile(join(stdout.trim(), "commands/dbcommands.h"), "utf8");
  if (!declared.includes(ownFunction)) return;
  for (const file of filesWithIt) {
    const text = await readFile(join(folder, file), "utf8");
    await writeFile(join(folder, file), text.replaceAll(ownFunction, `citus_${ownFunction}`));
  }
}

process.exitCode = await main(process.argv.slice(2));
