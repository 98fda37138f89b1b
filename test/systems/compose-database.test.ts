import { chownSync, copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { ops, run } from "../ops/files.ts";
import { freePort } from "../support/instance.ts";
import { needs } from "../support/programs.ts";
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
