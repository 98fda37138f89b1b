import { chownSync, copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { ops, run } from "../ops/files.ts";
import { fetchOnce } from "../support/fetched.ts";
import { freePort } from "../support/ports.ts";
import { needs, orSkip, pathOf } from "../support/programs.ts";
import { clusterPassword, initCluster, makeClusterFolder, startCluster } from "./postgres-cluster.ts";

test(
  "the database of compose takes connections by network with TLS only, under its own name",
  needs("postgres", "openssl"),
  async () => {
    const made = mkdtempSync(join(tmpdir(), "paybell-compose-"));
    onTestFinished(() => rmSync(made, { recursive: true }));
    copyFileSync(join(ops, "compose/secrets.sh"), join(made, "secrets.sh"));
    await run("sh", [join(made, "secrets.sh")]);
    const folder = await makeClusterFolder();
    onTestFinished(() => folder.remove());
    const data = await initCluster(folder);
    /** By their paths in the container. */
    const files = {
      "/run/secrets/database-ca": join(made, "tls/database.crt"),
      "/run/secrets/database-key": join(made, "tls/database.key"),
      "/etc/postgresql/pg_hba.conf": join(ops, "compose/pg_hba.conf"),
    };
    const { services } = parse(readFileSync(join(ops, "compose/compose.yml"), "utf8"), { merge: true });
    let args = (services.database.command as readonly string[]).slice(1);
    for (const [at, [inside, file]] of Object.entries(files).entries()) {
      const copy = join(folder.path, `file-${at}`);
      copyFileSync(file, copy);
      if (folder.account !== undefined) chownSync(copy, folder.account.uid, folder.account.gid);
      args = args.map((argument) => argument.replace(inside, copy));
    }
    const port = await freePort();
    const cluster = await startCluster(folder, data, [...args, "-clisten_addresses=127.0.0.1", `-cport=${port}`], port);
    onTestFinished(() => cluster.crash());
    const ask = async (ssl: object | false) => {
      const login = { user: "postgres", password: clusterPassword, database: "postgres" };
      const client = new Client({ host: "127.0.0.1", port, ssl, ...login });
      client.on("error", () => undefined);
      await client.connect();
      const { rows } = await client.query("SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
      await client.end();
      return rows;
    };
    const ca = readFileSync(files["/run/secrets/database-ca"], "utf8");
    expect(await ask({ ca, servername: "database" })).toEqual([{ version: "TLSv1.3" }]);
    await expect(ask(false)).rejects.toMatchObject({ code: "28000" });
    await expect(ask({ ca, servername: "another" })).rejects.toMatchObject({ code: "ERR_TLS_CERT_ALTNAME_INVALID" });
    await expect(ask({ servername: "database" })).rejects.toMatchObject({ code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
  },
);

// The part of `docker compose` that reads and checks its file.
const loader = "github.com/compose-spec/compose-go/v2/cmd@v2.9.1";
const go = needs("go");
const installed = go.skip
  ? undefined
  : await fetchOnce(`go/${loader.replaceAll("/", "-")}`, (folder) =>
      run(pathOf("go"), ["install", loader], { env: { ...process.env, GOBIN: folder } }),
    );
const needed = go.skip || installed !== undefined ? go : orSkip([`${loader}: Go cannot fetch it here`]);

test("compose accepts its file, and names a setting that it does not know", needed, async () => {
  const folder = mkdtempSync(join(tmpdir(), "paybell-compose-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(ops, "compose"), folder, { recursive: true });
  writeFileSync(join(folder, "paybell.env"), "");
  const file = join(folder, "compose.yml");
  const load = () => run(join(installed ?? "", "cmd"), ["-no-interpolation", file]);
  const { services } = parse((await load()).stdout);
  expect(Object.keys(services)).toEqual(expect.arrayContaining(["migrate", "paybell-1", "paybell-2", "proxy"]));
  writeFileSync(file, readFileSync(file, "utf8").replaceAll("stop_grace_period", "grace_period"));
  await expect(load()).rejects.toMatchObject({ stderr: expect.stringContaining("grace_period") });
});
