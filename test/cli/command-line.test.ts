import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadServer } from "../../packages/cli/src/service/service.ts";
import { moneyRecords } from "../../packages/server/src/http/payments/money.ts";
import { createDatabase } from "../support/database.ts";
import { spawnPaybell } from "../support/instance.ts";
import { freePort } from "../support/ports.ts";
import { CommandLine } from "./command-line.ts";
import { allCommands, commandsIn, parsed } from "./parser.ts";

let line: CommandLine;
beforeEach(() => {
  line = new CommandLine();
});
afterEach(() => line.remove());

describe("every command", () => {
  test.each(allCommands)("%s has an example that its own parser takes", async (path, examples) => {
    expect(examples.length).toBeGreaterThan(0);
    for (const example of examples) {
      for (const words of commandsIn(example)) {
        expect(allCommands.map(([name]) => name)).toContain(await parsed(words));
      }
    }
    expect(examples.join("\n")).toContain(path);
  });

  test.each(allCommands)("%s has help with the example, and says what the exit codes mean", async (path, examples) => {
    const { code, stdout } = await line.run([...path.split(" ").slice(1), "--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain(examples[0]);
    if (!/ (?:sandbox|serve|export|new|completion|complete)$/.test(path)) expect(stdout).toContain("--json");
  });

  test.each(allCommands)("%s refuses an unknown option, with exit code 2", async (path) => {
    const { code, stderr } = await line.run([...path.split(" ").slice(1), "--no-such-option"]);
    expect(code).toBe(2);
    // Commander tells a missing required option first.
    expect(stderr).toMatch(/--no-such-option|required option/);
    expect(stderr).not.toMatch(/\n\s+at /);
  });

  test.each([
    [["trigger", "--json"], "missing required argument 'what'."],
    [["statu", "--json"], "unknown command 'statu'."],
    [["listen", "--json", "--count", "x"], "It must be a whole number from 1 to 999999999."],
    [["notifications", "list", "--json", "--limit", "0"], "It must be a whole number from 1 to 9999999."],
    [["keys", "generate", "--json", "extra"], "too many arguments"],
  ])("%j tells its wrong usage as JSON", async (args, words) => {
    const { code, stdout, stderr } = await line.run(args);
    expect([code, stdout]).toEqual([2, ""]);
    expect(JSON.parse(stderr)).toEqual({
      error: { code: "bad_usage", message: expect.stringContaining(words), remedy: expect.any(String) },
    });
  });
});

describe("--state of the ledger's lists", () => {
  const env = { PAYBELL_URL: "https://paybell.example", PAYBELL_OPERATOR_TOKEN: "token" };

  test.each([
    ["transaction", "success", "SUCCESS"],
    ["batch", "Closed", "CLOSED"],
    ["settlement", "WAITING", "waiting"],
    ["reversal", "parked", "PARKED"],
    ["event", "PARKED", "parked"],
  ])("%s list takes %s", async (noun, state, sent) => {
    const asked: string[] = [];
    const empty: typeof fetch = (input) => {
      asked.push(new URL(String(input)).searchParams.get("state") ?? "");
      return Promise.resolve(Response.json({ items: [], next: null }));
    };
    const { code, stderr } = await line.run([noun, "list", "--state", state], { env, fetch: empty });
    expect([code, asked], stderr).toEqual([0, [sent]]);
  });

  test.each([
    ["transaction", moneyRecords.transactions],
    ["settlement", moneyRecords.settlements],
    ["reversal", moneyRecords.reversals],
  ] as const)("%s list refuses another with the list of states", async (noun, { one }) => {
    const states = one.shape.state.options.join(", ");
    const unasked: typeof fetch = () => Promise.reject(new Error("asked"));
    const { code, stderr } = await line.run([noun, "list", "--state", "lost"], { env, fetch: unasked });
    expect([code, stderr]).toEqual([2, expect.stringContaining(`It must be one of ${states}.`)]);
    const { stdout: help } = await line.run([noun, "list", "--help"]);
    expect(help.replaceAll('"', "").replaceAll(/\s+/g, " ")).toContain(states);
  });
});

test("paybell --version prints the package's version", async () => {
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../packages/cli/package.json"), "utf8"));
  const { code, stdout } = await line.run(["--version"]);
  expect([code, stdout]).toEqual([0, `${version}\n`]);
});

test("several commands under one word show an example of each", async () => {
  const { stdout } = await line.run(["partner", "--help"]);
  for (const one of ["partner add --name", "partner list", "partner show", "partner rotate"]) {
    expect(stdout).toContain(`  $ paybell ${one}`);
  }
});

describe("the service", () => {
  const on = (node: string) => loadServer({ process: { versions: { node }, env: {} } as unknown as NodeJS.Process });

  test.each(["20.19.0", "22.21.1"])("is not begun on Node %s, and the version is named", async (node) => {
    await expect(on(node)).rejects.toMatchObject({ code: "node_too_old", message: expect.stringContaining(node) });
  });

  test("runs on the versions that its package names, and so do its dependencies", async () => {
    const manifestOf = (folder: string) =>
      JSON.parse(readFileSync(join(import.meta.dirname, "../..", folder, "package.json"), "utf8"));
    const { engines, dependencies } = manifestOf("packages/server");
    for (const name of Object.keys(dependencies)) {
      const range = manifestOf(`node_modules/${name}`).engines?.node ?? "*";
      expect(accepts(range, engines.node.replace(">=", "")), `${name} needs Node ${range}`).toBe(true);
    }
    expect(await on(`${engines.node.replace(">=", "")}.0`)).toHaveProperty("runServe");
  });
});

/** Whether a range such as `^20.1 || >= 22.22.0` accepts this version; a bare number is of that major. */
function accepts(range: string, version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return range.split("||").some((one) => {
    const [, sign, wantedMajor, wantedMinor = "0"] = /^\s*(>=|\^|)\s*(\d+)(?:\.(\d+))?/.exec(one) ?? [];
    if (wantedMajor === undefined) return one.trim() === "*";
    if (major === Number(wantedMajor)) return minor >= Number(wantedMinor);
    return sign === ">=" && major > Number(wantedMajor);
  });
}

describe("credentials", () => {
  const nobody: typeof fetch = () => Promise.reject(new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } }));

  async function calls(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const seen: { url: string; key: string | null }[] = [];
    const recording: typeof fetch = (input, init) => {
      seen.push({ url: String(input), key: new Headers(init?.headers).get("authorization") });
      return nobody(input);
    };
    const { code, stderr } = await line.run(args, { env, fetch: recording });
    return { code, stderr, seen };
  }

  const sandbox = { baseUrl: "http://127.0.0.1:7420", apiKey: "pb_sandbox", operatorToken: "sandbox-token" };
  function inSandbox() {
    mkdirSync(join(line.folder, ".paybell"));
    line.write(".paybell/sandbox.json", sandbox);
  }

  test("come from the sandbox's file by default", async () => {
    inSandbox();
    const { code, seen } = await calls(["trigger", "sale"]);
    expect(code).toBe(3);
    expect(seen).toEqual([{ url: `${sandbox.baseUrl}/v1/commands`, key: "Bearer pb_sandbox" }]);
  });

  test("of the environment override the file, and flags override both", async () => {
    inSandbox();
    const own = await calls(["partner", "list"], { PAYBELL_OPERATOR_TOKEN: "own-token" });
    expect(own.seen).toMatchObject([{ key: "Bearer own-token" }]);
    const env = { PAYBELL_URL: "https://one.example", PAYBELL_OPERATOR_TOKEN: "own-token" };
    const flag = await calls(["partner", "list", "--url", "https://two.example/"], env);
    expect(flag.seen).toMatchObject([{ url: expect.stringMatching(/^https:\/\/two\.example\/operator/) }]);
  });

  test("of the sandbox are never sent elsewhere", async () => {
    inSandbox();
    for (const url of ["https://paybell.example", "http://127.0.0.1:7421", "https://127.0.0.1:7420"]) {
      const { code, seen, stderr } = await calls(["partner", "list", "--url", url]);
      expect([code, seen], url).toEqual([2, []]);
      expect(stderr).toContain("was not used");
    }
    expect((await calls(["partner", "list", "--url", "http://localhost:7420"])).seen).toHaveLength(1);
  });

  test.each([
    ...["paybell.example", "10.0.0.1", "0.0.0.0", "localhost.example", "127.0.0.1.example", "my-localhost"],
    ...["[::ffff:7f00:1]", "[::2]"],
  ])("never go over http:// to %s, another machine, without --allow-http", async (host) => {
    const env = { PAYBELL_URL: `http://${host}`, PAYBELL_OPERATOR_TOKEN: "own-token" };
    expect(await calls(["partner", "list"], env)).toMatchObject({ code: 2, seen: [] });
    expect((await calls(["partner", "list", "--allow-http"], env)).seen).toHaveLength(1);
  });

  test.each(["localhost:1", "127.8.9.10:1", "[::1]:1"])("go over http:// to %s, this machine", async (host) => {
    const env = { PAYBELL_URL: `http://${host}`, PAYBELL_OPERATOR_TOKEN: "own-token" };
    expect((await calls(["partner", "list"], env)).seen).toHaveLength(1);
  });

  test("come from the file that --credentials names, or else PAYBELL_CREDENTIALS, and not the sandbox's", async () => {
    inSandbox();
    for (const name of ["one", "two"]) line.write(`${name}.json`, { ...sandbox, operatorToken: name });
    const env = { PAYBELL_CREDENTIALS: "one.json" };
    expect((await calls(["partner", "list"], env)).seen).toMatchObject([{ key: "Bearer one" }]);
    const named = ["partner", "list", "--credentials", "two.json"];
    expect((await calls(named, env)).seen).toMatchObject([{ key: "Bearer two" }]);
  });

  test.each([
    ["{", "is not JSON"],
    ["[]", "is not a JSON object"],
    ['{"apiKey": 5}', "apiKey is not a string"],
    ['{"cipher": "des"}', "cipher must be one of"],
  ])("in a file that holds %s are refused by name", async (text, word) => {
    line.write("bad.json", text);
    const { code, stderr } = await calls(["partner", "show", "--credentials", "bad.json"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(word)]);
  });

  test("that are missing are named, and so is a missing file", async () => {
    expect((await calls(["trigger", "sale"])).stderr).toContain("--url or PAYBELL_URL");
    const env = { PAYBELL_URL: "https://paybell.example" };
    expect((await calls(["trigger", "sale"], env)).stderr).toContain("PAYBELL_API_KEY");
    expect((await calls(["trigger", "sale", "--credentials", "no.json"], env)).stderr).toContain("no.json cannot be");
  });

  test("in a URL are refused, and not repeated", async () => {
    const { code, stderr } = await calls(["status", "--url", "https://me:secret-word@paybell.example"]);
    expect(code).toBe(2);
    expect(stderr).not.toContain("secret-word");
  });
});

describe("errors", () => {
  const token = { PAYBELL_URL: "https://paybell.example", PAYBELL_OPERATOR_TOKEN: "token", PAYBELL_API_KEY: "pb_key" };
  const id = "01a1fc40-577c-728c-bd54-142edc79a51f";

  test.each([
    [["partner", "show", id], 404, "not_found", "`paybell partner list`"],
    [["terminal", "release", "T0000001", "--partner", id, "--yes"], 404, "not_found", "`paybell terminal list`"],
    [["notifications", "show", id], 404, "not_found", "`paybell notifications list`"],
    [["clearing", "show", id], 404, "not_found", "`paybell clearing files`"],
    [["proposal", "withdraw", id], 404, "not_found", "`paybell proposal list`"],
    [["clearing", "show", "x"], 400, "invalid_value", "`paybell clearing show --help`"],
    [["event", "list", "--partner", id], 400, "unknown_partner", "`paybell partner list`"],
    [["notifications", "list", "--as", "partner", "--after", "xyz"], 400, "invalid_cursor", "without --after"],
    [["operator", "list"], 403, "role_not_allowed", "`paybell operator add <name> --role <role>`"],
    [["partner", "rotate", "apiKey", "--partner", id], 403, "second_admin_required", "`paybell proposal confirm`"],
    [["operator", "list"], 401, "unauthorized", "`paybell operator add`"],
    [["notifications", "list", "--as", "partner"], 401, "unauthorized", "`paybell partner rotate apiKey`"],
    [["partner", "list"], 503, "unavailable", "`paybell status`"],
  ] as const)("of %j, which is answered %d %s, name the next command", async (args, status, code, next) => {
    const answer: typeof fetch = async () =>
      Response.json({ code, title: "T", detail: code === "unauthorized" ? "T" : "D", remedy: "R." }, { status });
    const ran = await line.run(args, { env: token, fetch: answer });
    expect([ran.code, ran.stderr]).toEqual([3, expect.stringContaining(next)]);
  });

  test.each([
    [["partner", "rotate", "masterKey", "--partner", id]],
    [["partner", "add", "--name", "A", "--settings", "none.json"]],
    [["terminal", "list"]],
    [["trigger", "everything"]],
    [["open", "none.json"]],
    [["clearing", "send", "none.csv", "--acquirer", "bank"]],
    [["endpoint", "change"]],
    [["listen", "--forward", "ftp://x"]],
    [["status", "--url", "paybell"]],
    [["restore", "release", "--partner", id, "--commands"]],
    [["proposal", "confirm", id]],
    [["notifications", "list", "--after", "xyz"]],
    [["certify", "ftp://x"]],
    [["operator", "revoke", "Ada"]],
  ])("of %j name the next command", async (args) => {
    const none: typeof fetch = async () => Response.json({ items: [], next: null });
    const { code, stderr } = await line.run(args, { env: token, fetch: none, stdin: "" });
    expect([code, stderr]).toEqual([2, expect.stringMatching(/→ .*`paybell [a-z]/)]);
  });

  test.each([
    [502, "<html>Bad gateway</html>", "not as Paybell does"],
    [200, "<html>Welcome</html>", "not as Paybell does"],
    [302, "", "not as Paybell does"],
  ])("of a %s that is not Paybell's say so", async (status, body, word) => {
    const env = { PAYBELL_URL: "https://paybell.example", PAYBELL_OPERATOR_TOKEN: "token" };
    const stranger: typeof fetch = () => Promise.resolve(new Response(body, { status }));
    const { code, stderr } = await line.run(["partner", "list"], { env, fetch: stranger });
    expect([code, stderr]).toEqual([3, expect.stringContaining(word)]);
  });

  const cut = (code: string) => () => Promise.reject(new TypeError("fetch failed", { cause: { code } }));
  test.each([
    ["a cut connection", "not known", cut("UND_ERR_SOCKET")],
    ["no answer in time", "not known", () => Promise.reject(new DOMException("too late", "TimeoutError"))],
    ["a proxy without the service's answer", "not known", async () => new Response("", { status: 504 })],
    ["no connection", "Is the service running", cut("ECONNREFUSED")],
    ["another program", "Is the URL right", async () => new Response("", { status: 404 })],
  ] as const)("at %s say whether a change was made: %s", async (_, word, answer) => {
    const env = { PAYBELL_URL: "https://paybell.example", PAYBELL_OPERATOR_TOKEN: "token" };
    const ran = await line.run(["operator", "add", "Ada", "--role", "viewer"], { env, fetch: answer });
    expect([ran.code, ran.stderr]).toEqual([3, expect.stringContaining(word)]);
    const read = await line.run(["partner", "list"], { env, fetch: answer });
    expect([read.code, read.stderr]).toEqual([3, expect.not.stringContaining("not known")]);
  });

  test("for an unknown key name its source, and never show it", async () => {
    const refusing: typeof fetch = () =>
      Promise.resolve(Response.json({ code: "unauthorized", detail: "D", remedy: "R" }, { status: 401 }));
    const env = { PAYBELL_URL: "https://paybell.example", PAYBELL_OPERATOR_TOKEN: "own-token" };
    const ofEnvironment = await line.run(["partner", "list"], { env, fetch: refusing });
    expect(ofEnvironment.code).toBe(3);
    expect(ofEnvironment.stderr).toContain(
      "https://paybell.example does not know the operator token in PAYBELL_OPERATOR_TOKEN.",
    );
    line.write("keys.json", { baseUrl: "https://paybell.example", apiKey: "pb_own" });
    const ofFile = await line.run(["trigger", "sale", "--anywhere", "--credentials", "keys.json"], { fetch: refusing });
    expect(ofFile.stderr).toContain("does not know the API key in keys.json.");
    expect(ofEnvironment.stderr + ofFile.stderr).not.toMatch(/own-token|pb_own/);
  });

  test("that are unexpected are shown without a stack, with exit code 4", async () => {
    const env = { PAYBELL_URL: "https://paybell.example", PAYBELL_OPERATOR_TOKEN: "token" };
    const odd: typeof fetch = () => Promise.resolve({ status: 200, text: async () => '{"items": 5}' } as Response);
    const { code, stderr } = await line.run(["partner", "list"], { env, fetch: odd });
    expect(code).toBe(4);
    expect(stderr).toMatch(/^paybell: this should not happen: .*\n {2}→ Report it, .*`paybell --version`.*\n$/);
  });

  test("untrusted text in them cannot control the terminal", async () => {
    const env = { PAYBELL_URL: "https://paybell.example", PAYBELL_OPERATOR_TOKEN: "token" };
    const errors = [{ field: "e", message: "e\u001bf" }];
    const problem = { code: "x", detail: "a\u001b[2Jb", remedy: "c\u202ed", errors };
    const stranger: typeof fetch = () => Promise.resolve(Response.json(problem, { status: 400 }));
    const { stderr } = await line.run(["partner", "list"], { env, fetch: stranger });
    expect(stderr).toMatch(/^paybell: a\\u\{1b\}\[2Jb\.\n {2}e\\u\{1b\}f\n {2}→ c\\u\{202e\}d /);
    for (const character of ["\u001b", "\u202e"]) expect(stderr).not.toContain(character);
    const asJson = await line.run(["partner", "list", "--json"], { env, fetch: stranger });
    expect(JSON.parse(asJson.stderr)).toEqual({
      error: {
        code: "x",
        message: "a\\u{1b}[2Jb.",
        lines: ["e\\u{1b}f"],
        remedy: expect.stringContaining("c\\u{202e}d"),
      },
    });
  });
});

describe("the process", () => {
  test("ends with the documented codes", async () => {
    const usage = spawnPaybell(["no-such-command"], {});
    expect(await usage.exited).toBe(2);
    const help = spawnPaybell(["--help"], {});
    expect(await help.exited).toBe(0);
    const away = spawnPaybell(["status"], {
      PAYBELL_URL: `http://127.0.0.1:${await freePort()}`,
      PAYBELL_OPERATOR_TOKEN: "token",
    });
    expect(await away.exited, away.output()).toBe(3);
    expect(away.output()).toContain("cannot be reached: nothing listens there (ECONNREFUSED)");
  });

  test("checks settings that cannot be read, and reports each as a finding", async () => {
    const check = spawnPaybell(["check", "--json"], {
      PAYBELL_PORT: "x",
      PAYBELL_PROT: "1",
      PAYBELL_HOME: line.folder,
    });
    expect(await check.exited, check.output()).toBe(1);
    const finding = (detail: string) => ({ level: "error", what: "settings", detail: expect.stringContaining(detail) });
    expect(JSON.parse(check.output())).toMatchObject({
      findings: [finding("PAYBELL_PROT is not a setting"), finding("PAYBELL_PORT must be")],
    });
  });

  /** A server of the test's own; `asked` resolves with the first request. */
  async function startServer(answer: (path: string) => object | undefined) {
    const asked = Promise.withResolvers<void>();
    const server = createServer(({ url = "" }, response) => {
      asked.resolve();
      const body = answer(url);
      if (body !== undefined) response.end(JSON.stringify(body));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      asked: asked.promise,
      async close() {
        const closed = once(server.close(), "close");
        server.closeAllConnections();
        await closed;
      },
    };
  }

  test.each([
    ["status", "SIGINT"],
    ["status", "SIGTERM"],
    ["listen", "SIGINT"],
  ] as const)("ends %s at %s with 130 and without a word, whatever it waits for", async (name, signal) => {
    const silent = await startServer(() => undefined);
    const env = { PAYBELL_URL: silent.url, PAYBELL_OPERATOR_TOKEN: "token", PAYBELL_API_KEY: "pb_key" };
    const child = spawnPaybell([name], env);
    await silent.asked;
    child.signal(signal);
    const code = await child.exited;
    await silent.close();
    expect([code, child.output()]).toEqual([130, ""]);
  });

  test("ends when its output is no longer read", async () => {
    const item = {
      id: "n",
      createdAt: "2026-01-01T00:00:00.000Z",
      kind: "card",
      state: "accepted",
      data: "",
      headers: {},
    };
    const settings = { name: "P", cipher: "jwe", encoding: "base64", signing: { mode: "fields" } };
    const endless = await startServer((path) =>
      path === "/v1/self" ? { id: "p", settings } : { items: [item], next: "more" },
    );
    const env = { PAYBELL_URL: endless.url, PAYBELL_API_KEY: "pb_key" };
    const child = spawnPaybell(["listen", "--since-start", "--json"], env);
    await child.said((text) => text.includes('"notificationId":"n"') || undefined);
    child.stopListening();
    expect(await child.exited).toBe(0);
    await endless.close();
  });
});

describe("before a start", () => {
  // One home for all, so that its data is made once.
  const kept = new CommandLine();
  const home = kept.folder;
  afterAll(() => kept.remove());

  test("runs the service although variables for other commands are set", async () => {
    const env = { PAYBELL_URL: "https://paybell.example", PAYBELL_API_KEY: "pb_key", PAYBELL_CIPHER: "jwe" };
    const check = await line.run(["check", "--json"], { env: { ...env, PAYBELL_HOME: home } });
    const { findings } = check.json<{ findings: { what: string }[] }>();
    expect(findings.map(({ what }) => what)).toContain("database");
  });

  test("names an intake folder that does not exist as a finding", async () => {
    const folder = join(line.folder, "nowhere");
    const env = { PAYBELL_HOME: home, PAYBELL_INTAKE_FOLDER: folder };
    const check = await line.run(["check", "--json"], { env });
    expect(check.code).toBe(1);
    expect(check.json<{ findings: unknown[] }>().findings).toContainEqual({
      level: "error",
      what: "intake folder",
      detail: `PAYBELL_INTAKE_FOLDER (${folder}) does not exist`,
      remedy: "Name a folder that this service may write to.",
    });
  });

  test.each([
    ["is missing", undefined, "does not exist"],
    ["is empty", "", "holds no PEM certificate"],
    [
      "is cut",
      "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
      "holds a certificate that cannot be read: number 1",
    ],
  ])(
    "names a file of callback authorities that %s: check as a finding, serve and sandbox before they start",
    async (_, pem, words) => {
      if (pem !== undefined) line.write("ca.pem", pem);
      const env = {
        PAYBELL_HOME: home,
        PAYBELL_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
        PAYBELL_CALLBACK_CA_FILE: join(line.folder, "ca.pem"),
      };
      const check = await line.run(["check", "--json"], { env });
      expect(check.code).toBe(1);
      const { findings } = check.json<{ findings: { level: string; what: string; detail: string }[] }>();
      expect(findings.filter(({ level }) => level === "error")).toMatchObject([
        { what: "callback CAs", detail: expect.stringContaining(words) },
      ]);
      const ports = { PAYBELL_PORT: String(await freePort()), PAYBELL_OPERATOR_PORT: String(await freePort()) };
      const DATABASE_URL = "postgres://127.0.0.1:9/none";
      for (const refused of [
        await line.run(["serve"], { env: { ...env, ...ports, DATABASE_URL } }),
        await line.run(["sandbox"], { env: { ...env, PAYBELL_PORT: ports.PAYBELL_PORT } }),
      ]) {
        expect([refused.code, refused.stdout]).toEqual([1, ""]);
        expect(refused.stderr).toMatch(/^paybell: PAYBELL_CALLBACK_CA_FILE \(.*ca\.pem\) /);
        expect(refused.stderr).toContain(words);
      }
    },
  );

  test("checks the schema: a newer one is an error, this version's is not", async () => {
    const database = await createDatabase();
    try {
      const env = { DATABASE_URL: database.url, PAYBELL_MASTER_KEY: Buffer.alloc(32, 7).toString("base64") };
      const schema = async () => {
        const check = await line.run(["check", "--json"], { env });
        const { findings } = check.json<{ findings: { what: string; level: string }[] }>();
        return findings.find(({ what }) => what === "schema");
      };
      expect(await schema()).toMatchObject({ level: "ok", detail: "is this version's" });
      const client = new Client({ connectionString: database.url });
      await client.connect();
      await client.query("INSERT INTO migrations (number, name, sha256, breaking) VALUES (9999, 'newer', '', true)");
      await client.end();
      expect(await schema()).toMatchObject({
        level: "error",
        detail: expect.stringContaining("breaking migration newer"),
      });
    } finally {
      await database.drop();
    }
  });

  test("says what a start would meet, a remedy below each problem", async () => {
    const PAYBELL_MASTER_KEY = Buffer.alloc(32, 7).toString("base64");
    const env = { PAYBELL_HOME: home, PAYBELL_MASTER_KEY, PAYBELL_EGRESS_ADDRESSES: "198.51.100.7" };
    const check = await line.run(["check"], { env });
    expect(check.code, check.stderr).toBe(0);
    const comparable = (text: string) => text.trim().replaceAll(/\d+(?:\.\d+)?/g, "<n>");
    expect(comparable(check.stdout)).toBe(comparable(preflight));
  });
});

/** Of a new database, without an acquirer and without a target for alerts. The numbers vary. */
const preflight = `\
ok       database            reachable, PostgreSQL 18.4
ok       version             18.4 is supported
ok       fsync               is on
ok       full_page_writes    is on
ok       synchronous_commit  is on
ok       primary             this server accepts writes
ok       clock               2 ms from the database's
ok       LISTEN              notifications arrive
ok       permission          reads and writes rows; another role owns the schema
ok       schema              is created at the first start
ok       master key          is set, and will be used for this new database
ok       egress              published to partners: 198.51.100.7
warning  alerts              alerts are sent to nobody
                             → Set PAYBELL_ALERT_URL and PAYBELL_ALERT_SECRET, PAYBELL_ALERT_SLACK_URL or PAYBELL_ALERT_MAIL_URL.
warning  acquirer            there is none: commands are refused
                             → Connect a host with PAYBELL_ACQUIRER=iso8583, or report completions from your switch.`;
