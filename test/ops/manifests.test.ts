import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { settingNames } from "../../packages/server/src/config/config.ts";
import { needs } from "../support/programs.ts";
import { ops, run } from "./files.ts";

/** Every name of a setting that a file of ops/ writes. */
const named = (text: string) => [...new Set(text.match(/\bPAYBELL_[A-Z_]+\b/g))];
const known = new Set(settingNames());

test("every setting that the files name exists", () => {
  const files = readdirSync(ops, { recursive: true, encoding: "utf8", withFileTypes: true });
  for (const { parentPath, name } of files.filter((file) => file.isFile())) {
    const path = join(parentPath, name);
    const strangers = named(readFileSync(path, "utf8")).filter((name) => !known.has(name));
    expect(strangers, path).toEqual([]);
  }
});

test("the proxy and Prometheus have the addresses that the instances of one machine get", () => {
  const read = (name: string) => readFileSync(join(ops, name), "utf8");
  const unit = read("systemd/paybell@.service");
  const ports = ["PAYBELL_PORT", "PAYBELL_OPERATOR_PORT"].map(
    (name) => new RegExp(`\\b${name}=(\\d+)%i\\b`).exec(unit)?.[1],
  );
  const [partners, operators] = ports.map((port) => [`127.0.0.1:${port}1`, `127.0.0.1:${port}2`]);
  const servers = [...read("nginx/upstream.conf").matchAll(/^ +server (\S+) max_fails=0;$/gm)].map(([, one]) => one);
  expect(servers).toEqual([...(partners ?? []), ...(operators ?? [])]);
  expect(parse(read("systemd/prometheus.yml")).scrape_configs[0].static_configs[0].targets).toEqual(operators);
});

describe("compose", () => {
  const folder = join(ops, "compose");
  const compose = parse(readFileSync(join(folder, "compose.yml"), "utf8"), { merge: true });

  interface Service {
    readonly volumes?: readonly string[];
    readonly ports?: readonly string[];
    readonly secrets?: readonly string[];
    readonly env_file?: readonly string[];
    readonly depends_on?: readonly string[] | Readonly<Record<string, object>>;
    readonly build?: { readonly context: string; readonly dockerfile: string };
  }
  const services = Object.entries(compose.services as Record<string, Service>);
  /** Made by secrets.sh. */
  const secretFiles = [
    ...["master.key", "operator.token", "grafana.password"],
    ...["database.password", "database.url", "owner.password", "owner.url"],
  ].map((name) => `secrets/${name}`);
  const made = new Set(["paybell.env", "tls", "tls/database.crt", "tls/database.key", ...secretFiles]);
  const isThere = (path: string) => made.has(path.replace(/^\.\//, "")) || existsSync(join(folder, path));

  test.each(services)("%s names only existing files and volumes", (_, { volumes = [], env_file = [], build }) => {
    for (const volume of volumes) {
      const [source = ""] = volume.split(":");
      expect(source.startsWith(".") ? isThere(source) : source in compose.volumes, volume).toBe(true);
    }
    for (const file of env_file) expect(isThere(file), file).toBe(true);
    if (build !== undefined) expect(existsSync(join(folder, build.context, build.dockerfile))).toBe(true);
  });

  test.each(services)("%s names only existing secrets and services", (_, { secrets = [], depends_on = [] }) => {
    for (const secret of secrets) expect(compose.secrets).toHaveProperty(secret);
    const needed = Array.isArray(depends_on) ? depends_on : Object.keys(depends_on);
    for (const other of needed) expect(compose.services).toHaveProperty(other);
    for (const { file } of Object.values<{ file: string }>(compose.secrets)) expect(isThere(file)).toBe(true);
  });

  test("only the migration has the role that owns the schema, and the instances wait for it", () => {
    const withOwner = services.filter(([, { secrets = [] }]) => secrets.includes("owner-url")).map(([name]) => name);
    expect(withOwner).toEqual(["migrate"]);
    for (const name of ["paybell-1", "paybell-2"]) {
      expect(compose.services[name].depends_on.migrate).toEqual({ condition: "service_completed_successfully" });
    }
  });

  test("the proxy finds an instance again that was made anew, and shows the console on this machine only", () => {
    const addressOf = (name: string) => compose.services[name].networks.paybell.ipv4_address;
    const upstream = readFileSync(join(folder, "upstream.conf"), "utf8");
    const servers = [...upstream.matchAll(/^ +server (\S+) max_fails=0;$/gm)].map(([, one]) => one);
    const [first, second] = [addressOf("paybell-1"), addressOf("paybell-2")];
    expect(servers).toEqual([7420, 7421].flatMap((port) => [`${first}:${port}`, `${second}:${port}`]));
    expect(compose.services.proxy.ports).toEqual(["443:443", "127.0.0.1:8443:8443"]);
    const published = services.flatMap(([, { ports = [] }]) => ports);
    expect(published.filter((one) => !one.startsWith("127.0.0.1:"))).toEqual(["443:443"]);
  });

  test("its images are pinned by images.sh, and no password is a default", () => {
    const pinned = [...readFileSync(join(folder, "images.sh"), "utf8").matchAll(/^ {2}pin (\w+) \S+:\S+$/gm)].map(
      ([, name]) => name,
    );
    const images = Object.values(compose.services as Record<string, { image: string; build?: { args: object } }>);
    const used = images.map(({ image, build }) => (build === undefined ? image : Object.values(build.args)[0]));
    const names = used.map((text) => /^\$\{(\w+):\?[^}]+\}$/.exec(String(text))?.[1]);
    expect([...new Set(names)].sort()).toEqual(pinned.toSorted());
    expect(compose.services.grafana.environment).toHaveProperty("GF_SECURITY_ADMIN_PASSWORD__FILE");
  });

  test(
    "its secrets are made once, each of them, and the settings made of them are known",
    needs("openssl"),
    async () => {
      const copy = mkdtempSync(join(tmpdir(), "paybell-compose-"));
      onTestFinished(() => rmSync(copy, { recursive: true }));
      const script = join(copy, "secrets.sh");
      writeFileSync(script, readFileSync(join(folder, "secrets.sh")), { mode: 0o755 });
      await run(script);
      const read = (name: string) => readFileSync(join(copy, name), "utf8");
      const files = ["paybell.env", "tls/paybell.crt", "tls/database.key", ...secretFiles];
      const first = files.map(read);
      await run(script);
      expect(files.map(read)).toEqual(first);
      for (const name of ["paybell.env", "tls/paybell.key", "tls/database.key", ...secretFiles]) {
        expect(statSync(join(copy, name)).mode & 0o777, name).toBe(0o600);
      }
      expect(read("paybell.env")).not.toContain(read("secrets/operator.token").trim());
      expect(read("secrets/database.url")).toContain(`:${read("secrets/database.password").trim()}@database/`);
      expect(read("secrets/owner.url")).toContain(`paybell_owner:${read("secrets/owner.password").trim()}@database/`);
      for (const url of ["database", "owner"]) expect(read(`secrets/${url}.url`)).toContain("sslmode=verify-full");
      expect(Buffer.from(read("secrets/master.key").trim(), "base64")).toHaveLength(32);
      expect(named(read("paybell.env")).filter((name) => !known.has(name))).toEqual([]);
      const drop = /^#PAYBELL_INTAKE_FOLDER=(.*)$/m.exec(read("paybell.env"))?.[1];
      expect(compose.services["paybell-1"].volumes).toEqual([`intake:${drop}`]);
      const operators = /^PAYBELL_OPERATOR_ADDRESSES=(.*)$/m.exec(read("paybell.env"))?.[1];
      expect(operators?.split(","), "operators run `paybell` inside the container").toContain("127.0.0.0/8");
      expect(dirname(script)).toBe(copy);
    },
  );
});
