import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../../../../test/support/temporary.ts";
import { defaultSettings } from "../partners/settings/settings.ts";
import { ConfigError, readConfig, type SettingKey, shownSettings } from "./config.ts";
import { retryBounds } from "./retry-schedule.ts";
import { settings } from "./settings.ts";

const masterKey = Buffer.alloc(32, 7).toString("base64");
const operatorToken = "operator-token-operator-token-123";
const alertSecret = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;

function problemsOf(env: NodeJS.ProcessEnv, required: readonly SettingKey[] = []): readonly string[] {
  try {
    readConfig(env, required);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

describe("readConfig", () => {
  test("an empty environment gives every default", () => {
    const config = readConfig({});
    for (const [key, setting] of Object.entries(settings)) expect(config).toHaveProperty(key, setting.default);
    expect(config.port).toBe(7420);
    expect(config.masterKey).toBeNull();
  });

  test("the default schedule is the one that partners have by default, within the bounds that theirs have", () => {
    expect(readConfig({}).retrySeconds).toEqual(defaultSettings.retry);
    const { stepsMax, stepSecondsMax } = retryBounds;
    const longest = Array.from({ length: stepsMax }, () => String(stepSecondsMax));
    const env = { PAYBELL_HISTORY_DAYS: "100", PAYBELL_RETRY_SECONDS: longest.join(",") };
    expect(readConfig(env).retrySeconds).toHaveLength(stepsMax);
    expect(problemsOf({ ...env, PAYBELL_RETRY_SECONDS: [...longest, "1"].join(",") })).toHaveLength(1);
    expect(problemsOf({ ...env, PAYBELL_RETRY_SECONDS: String(stepSecondsMax + 1) })).toHaveLength(1);
  });

  test("reads each kind of value", () => {
    const config = readConfig({
      PAYBELL_PORT: "8080",
      PAYBELL_MASTER_KEY: masterKey,
      PAYBELL_OPERATOR_TOKEN: `${operatorToken}, ${operatorToken}x`,
      PAYBELL_TRUSTED_PROXIES: "10.0.0.0/8,::1",
      PAYBELL_LOG_LEVEL: "debug",
      PAYBELL_RETRY_SECONDS: "1,2,3",
      DATABASE_URL: "postgres://paybell@db/paybell",
    });
    expect(config.port).toBe(8080);
    expect(config.masterKey).toEqual(Buffer.alloc(32, 7));
    expect(config.operatorTokens).toEqual([operatorToken, `${operatorToken}x`]);
    expect(config.trustedProxies).toEqual(["10.0.0.0/8", "::1"]);
    expect(config.logLevel).toBe("debug");
    expect(config.retrySeconds).toEqual([1, 2, 3]);
    expect(config.databaseUrl).toBe("postgres://paybell@db/paybell");
  });

  test("a variable that is set to nothing counts as not set", () => {
    expect(readConfig({ PAYBELL_PORT: "", PAYBELL_ALERT_URL: " " }).port).toBe(7420);
  });

  test.each([
    ["PAYBELL_PORT", "0", 'PAYBELL_PORT must be a whole number from 1 to 65535, found "0"'],
    ["PAYBELL_PORT", "7420x", 'PAYBELL_PORT must be a whole number from 1 to 65535, found "7420x"'],
    ["PAYBELL_PORT", "1e3", 'PAYBELL_PORT must be a whole number from 1 to 65535, found "1e3"'],
    [
      "PAYBELL_TRUSTED_PROXIES",
      "10.0.0.0/33",
      'PAYBELL_TRUSTED_PROXIES must be IP addresses or CIDR ranges, separated by commas, found "10.0.0.0/33"',
    ],
    [
      "PAYBELL_ALERT_ADDRESSES",
      "::ffff:10.0.0.0/104",
      'PAYBELL_ALERT_ADDRESSES must be IP addresses or CIDR ranges, separated by commas, found "::ffff:10.0.0.0/104"',
    ],
    [
      "PAYBELL_LOG_LEVEL",
      "loud",
      'PAYBELL_LOG_LEVEL must be one of fatal, error, warn, info, debug, trace, silent, found "loud"',
    ],
  ])("%s=%s is refused in words", (name, value, problem) => {
    expect(problemsOf({ [name]: value })).toEqual([problem]);
  });

  test("all problems are reported at once", () => {
    const problems = problemsOf({ PAYBELL_PORT: "no", PAYBELL_SLOTS_MAX: "no", PAYBELL_PROT: "1" });
    expect(problems).toHaveLength(3);
  });

  test.each([
    ["DATABASE_URL", "mysql://user:hunter2@db/x"],
    ["PAYBELL_MASTER_KEY", "hunter2"],
    ["PAYBELL_OPERATOR_TOKEN", "hunter2"],
    ["PAYBELL_ALERT_SECRET", "hunter2"],
    ["PAYBELL_ALERT_URL", "ftp://hunter2"],
    ["PAYBELL_ALERT_MAIL_URL", "smtp://ops:100%hunter2@mail.example"],
  ])("the refused value of the secret %s is not shown", (name, value) => {
    const [problem = ""] = problemsOf({ [name]: value });
    expect(problem).toMatch(new RegExp(`^${name} must be .*, found something else$`));
    expect(problem).not.toContain("hunter2");
  });

  test.each(["postgres://paybell@/paybell?host=/run/postgresql", "postgresql:///paybell?host=/run/postgresql"])(
    "DATABASE_URL may name a unix socket: %s",
    (databaseUrl) => {
      expect(readConfig({ DATABASE_URL: databaseUrl }).databaseUrl).toBe(databaseUrl);
    },
  );

  test("an unknown PAYBELL_ name is an error that suggests the nearest known one", () => {
    expect(problemsOf({ PAYBELL_PROT: "1" })).toEqual(["PAYBELL_PROT is not a setting; did you mean PAYBELL_PORT?"]);
    // The common prefix of all names does not count as similarity.
    expect(problemsOf({ PAYBELL_FOO: "1" })).toEqual(["PAYBELL_FOO is not a setting"]);
    expect(problemsOf({ PAYBELL_OPERATOR_TOKENS: "x" })).toEqual([
      "PAYBELL_OPERATOR_TOKENS is not a setting; did you mean PAYBELL_OPERATOR_TOKEN?",
    ]);
    expect(problemsOf({ PAYBELL_QQQQQQQQQQQQQ: "1" })).toEqual(["PAYBELL_QQQQQQQQQQQQQ is not a setting"]);
  });

  test("a setting of an earlier version is an error that says what replaced it", () => {
    expect(problemsOf({ PAYBELL_DELIVERY_WORKERS: "4" })).toEqual([
      "PAYBELL_DELIVERY_WORKERS is no longer a setting: to use more processors, start more instances (docs/scaling.md)",
    ]);
  });

  test.each([
    "a".repeat(32),
    "ab".repeat(16),
    "0123".repeat(20),
    `${"a".repeat(40)}bcd`,
    "12345678901234567890123456789012",
  ])("an operator token that can be guessed is refused, and not shown: %s", (weak) => {
    const [problem = ""] = problemsOf({ PAYBELL_OPERATOR_TOKEN: weak });
    expect(problem).toMatch(/^PAYBELL_OPERATOR_TOKEN must be .*openssl rand/);
    expect(problem).not.toContain(weak);
    // Of random ones that are this short, one in 400,000 is refused.
    const short = "8d3f0a51c96e27b4f8120d9ae6c357b1";
    for (const good of [short, randomBytes(32).toString("hex"), randomBytes(32).toString("base64url")]) {
      expect(problemsOf({ PAYBELL_OPERATOR_TOKEN: good })).toEqual([]);
    }
  });

  test("the master key may stand in a file, which is named and never shown", async () => {
    const folder = temporaryFolder();
    const file = join(folder, "master.key");
    await writeFile(file, `${masterKey}\n`);
    const config = readConfig({ PAYBELL_MASTER_KEY_FILE: file }, ["masterKey"]);
    expect(config.masterKey).toEqual(Buffer.from(masterKey, "base64"));
    expect(inspect(config)).not.toContain(masterKey);
    expect(problemsOf({ PAYBELL_MASTER_KEY_FILE: file, PAYBELL_MASTER_KEY: masterKey })).toEqual([
      "PAYBELL_MASTER_KEY and PAYBELL_MASTER_KEY_FILE are both set: set one of them",
    ]);
    expect(problemsOf({ PAYBELL_MASTER_KEY_FILE: join(folder, "none") })[0]).toMatch(
      /^PAYBELL_MASTER_KEY_FILE cannot be read: ENOENT/,
    );
    await writeFile(file, "my secret key");
    const [problem] = problemsOf({ PAYBELL_MASTER_KEY_FILE: file });
    expect(problem).toMatch(/^PAYBELL_MASTER_KEY must be the base64 of 32 bytes, .*, found something else$/);
  });

  test("every secret can be in a file", () => {
    const names = Object.values(settings)
      .filter(({ isSecret }) => isSecret)
      .map(({ name }) => name);
    expect(names).toContain("DATABASE_URL");
    const env = Object.fromEntries(names.map((name) => [`${name}_FILE`, "/none/of-these"]));
    const problems = problemsOf(env);
    for (const name of names) expect(problems.join("\n")).toContain(`${name}_FILE cannot be read: ENOENT`);
  });

  test("a required setting that is missing is named with its meaning", () => {
    const [problem] = problemsOf({}, ["masterKey"]);
    expect(problem).toMatch(/^PAYBELL_MASTER_KEY is required: .*openssl rand/);
    expect(problemsOf({ PAYBELL_MASTER_KEY: masterKey }, ["masterKey"])).toEqual([]);
  });

  test("settings that contradict each other are refused", () => {
    expect(problemsOf({ PAYBELL_HISTORY_DAYS: "10" })[0]).toMatch(
      /^PAYBELL_HISTORY_DAYS must be at least 11 .*found 10$/,
    );
    expect(problemsOf({ PAYBELL_LEDGER_DAYS: "89" })[0]).toMatch(/^PAYBELL_LEDGER_DAYS must be at least/);
    expect(problemsOf({ PAYBELL_LEDGER_DAYS: "90", PAYBELL_PREAUTH_DAYS: "91" })[0]).toMatch(
      /^PAYBELL_LEDGER_DAYS must be at least PAYBELL_PREAUTH_DAYS \(91\), found 90$/,
    );
    expect(problemsOf({ PAYBELL_HEADERS_TIMEOUT_MS: "31000" })[0]).toMatch(
      /^PAYBELL_HEADERS_TIMEOUT_MS must be at most PAYBELL_REQUEST_TIMEOUT_MS/,
    );
    expect(problemsOf({ PAYBELL_CONNECT_TIMEOUT_MS: "20000" })[0]).toMatch(
      /^PAYBELL_CONNECT_TIMEOUT_MS must be at most/,
    );
    expect(problemsOf({ PAYBELL_ALERT_URL: "https://ops.example/alerts" })[0]).toMatch(
      /^PAYBELL_ALERT_SECRET is required/,
    );
    expect(problemsOf({ PAYBELL_ALERT_URL: "https://ops.example/alerts", PAYBELL_ALERT_SECRET: alertSecret })).toEqual(
      [],
    );
  });

  test.each([
    [{ PAYBELL_KAFKA_BROKERS: "a:1" }, "PAYBELL_KAFKA_TOPIC is required with PAYBELL_KAFKA_BROKERS"],
    [
      { PAYBELL_KAFKA_SASL: "PLAIN", PAYBELL_KAFKA_USER: "u" },
      "PAYBELL_KAFKA_PASSWORD is required with PAYBELL_KAFKA_SASL",
    ],
    [
      { PAYBELL_KAFKA_KEY_FILE: "key.pem" },
      "PAYBELL_KAFKA_CERTIFICATE_FILE and PAYBELL_KAFKA_KEY_FILE are required together",
    ],
    [
      { PAYBELL_KAFKA_TOPIC: "t", PAYBELL_KAFKA_DEAD_LETTER_TOPIC: "t" },
      "PAYBELL_KAFKA_DEAD_LETTER_TOPIC must differ from PAYBELL_KAFKA_TOPIC",
    ],
    [
      { PAYBELL_ALERT_MAIL_URL: "smtp://mail.example", PAYBELL_ALERT_MAIL_FROM: "a@x.example" },
      "PAYBELL_ALERT_MAIL_TO is required with PAYBELL_ALERT_MAIL_URL",
    ],
  ])("%j is refused", (env, problem) => {
    expect(problemsOf(env as NodeJS.ProcessEnv)).toEqual([problem]);
  });

  test("a host of the acquirer is a name and a port, and needs its profile", () => {
    const env = { PAYBELL_ACQUIRER: "iso8583", PAYBELL_ACQUIRER_PROFILE: "profile.json" };
    const hosts = "first.bank.example:5000, [2001:db8::1]:5001,192.0.2.7:5002";
    expect(readConfig({ ...env, PAYBELL_ACQUIRER_HOSTS: hosts }).acquirerHosts).toEqual([
      { host: "first.bank.example", port: 5_000 },
      { host: "2001:db8::1", port: 5_001 },
      { host: "192.0.2.7", port: 5_002 },
    ]);
    for (const wrong of ["bank.example", "bank.example:0", "bank.example:65536", "http://bank.example:5000", ":5000"]) {
      expect(problemsOf({ ...env, PAYBELL_ACQUIRER_HOSTS: wrong })[0]).toMatch(/^PAYBELL_ACQUIRER_HOSTS must be hosts/);
    }
    expect(problemsOf({ PAYBELL_ACQUIRER: "iso8583", PAYBELL_ACQUIRER_KEY_FILE: "key.pem" })).toEqual([
      "PAYBELL_ACQUIRER_PROFILE is required with PAYBELL_ACQUIRER=iso8583",
      "PAYBELL_ACQUIRER_HOSTS is required with PAYBELL_ACQUIRER=iso8583",
      "PAYBELL_ACQUIRER_CERTIFICATE_FILE and PAYBELL_ACQUIRER_KEY_FILE are required together",
    ]);
  });

  test("the key of the acquirer's MACs is hexadecimal, and never shown", () => {
    const key = "0123456789abcdef0123456789abcdef";
    const config = readConfig({ PAYBELL_ACQUIRER_MAC_KEY: key });
    expect(config.acquirerMacKey).toEqual(Buffer.from(key, "hex"));
    expect(inspect(config) + JSON.stringify(config)).not.toContain("0123456789");
    for (const wrong of [key.slice(1), `${key}00`, `${key.slice(0, 30)}zz`]) {
      expect(problemsOf({ PAYBELL_ACQUIRER_MAC_KEY: wrong })).toEqual([
        "PAYBELL_ACQUIRER_MAC_KEY must be the hexadecimal of 16, 24 or 32 bytes, found something else",
      ]);
    }
  });

  test("printed or serialised, a configuration shows no secret", () => {
    const config = readConfig({
      PAYBELL_MASTER_KEY: masterKey,
      PAYBELL_OPERATOR_TOKEN: operatorToken,
      DATABASE_URL: "postgres://paybell:hunter2@db/paybell",
    });
    const copy = { ...config, port: 7420 };
    for (const shown of [JSON.stringify(config), inspect(config), JSON.stringify({ copy }), inspect({ copy })]) {
      expect(shown).toContain("set");
      expect(shown).toContain("7420");
      expect(shown).not.toContain(operatorToken);
      expect(shown).not.toContain("hunter2");
      expect(shown).not.toContain(masterKey);
    }
  });
});

describe("traces", () => {
  test("are off, and have the names that OpenTelemetry defines", () => {
    expect(readConfig({})).toMatchObject({
      tracesEndpoint: null,
      tracesHeaders: [],
      tracesSampler: "parentbased_always_on",
    });
    const config = readConfig({
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318",
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20hunter2, x-scope=a%2Cb%3D",
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.05",
    });
    expect(config.tracesHeaders).toEqual([
      ["authorization", "Bearer hunter2"],
      ["x-scope", "a,b="],
    ]);
    expect(config.tracesShare).toBe(0.05);
    for (const shown of [inspect(config), JSON.stringify(config), JSON.stringify(shownSettings(config))]) {
      expect(shown).not.toContain("hunter2");
    }
  });

  test.each([
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "hunter2"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "a=%zzhunter2"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "a=b%0d%0ahunter2:1"],
    ["OTEL_TRACES_SAMPLER", "jaeger_remote"],
    ["OTEL_TRACES_SAMPLER_ARG", "1.5"],
    ["OTEL_TRACES_SAMPLER_ARG", "5%"],
    ["PAYBELL_FEED", "syslog:///var/log/feed"],
    ["PAYBELL_FEED", "file:///var/log/5%.jsonl"],
    ["PAYBELL_FEED", "file:///var%2Flog/feed.jsonl"],
  ])("%s=%s is refused", (name, value) => {
    const [problem = "", ...others] = problemsOf({ [name]: value });
    expect(problem).toMatch(new RegExp(`^${name} must be `));
    expect(problem).not.toContain("hunter2");
    expect(others).toEqual([]);
  });
});

describe("sign-in by OpenID", () => {
  const env = {
    PAYBELL_OIDC_ISSUER: "https://login.example",
    PAYBELL_OIDC_CLIENT_ID: "paybell",
    PAYBELL_OIDC_CLIENT_SECRET: "s",
    PAYBELL_CONSOLE_URL: "https://ops.example",
  };

  test("takes values that hold an equals sign, and refuses a role that does not exist", () => {
    expect(readConfig({ ...env, PAYBELL_OIDC_ROLES: "cn=desk=admin, b=viewer" }).oidcRoles).toEqual([
      "cn=desk=admin",
      "b=viewer",
    ]);
    for (const wrong of ["admin", "=admin", "a=owner"]) {
      expect(problemsOf({ ...env, PAYBELL_OIDC_ROLES: wrong })).toHaveLength(1);
    }
  });

  test.each([
    ["PAYBELL_OIDC_CLIENT_ID", "", "PAYBELL_OIDC_CLIENT_ID is required with PAYBELL_OIDC_ISSUER"],
    ["PAYBELL_OIDC_CLIENT_SECRET", "", "PAYBELL_OIDC_CLIENT_SECRET is required with PAYBELL_OIDC_ISSUER"],
    ["PAYBELL_CONSOLE_URL", "", "PAYBELL_CONSOLE_URL is required with PAYBELL_OIDC_ISSUER"],
    ["PAYBELL_CONSOLE_URL", "http://ops.example", "PAYBELL_CONSOLE_URL must begin with https://, except on localhost"],
    ["PAYBELL_OIDC_ISSUER", "http://a.example", "PAYBELL_OIDC_ISSUER must begin with https://, except on localhost"],
    ["PAYBELL_OIDC_SCOPES", "profile", "PAYBELL_OIDC_SCOPES must hold openid"],
  ])("is refused at the start where %s is %j", (name, value, problem) => {
    expect(problemsOf(env)).toEqual([]);
    expect(problemsOf({ ...env, [name]: value })).toEqual([problem]);
  });

  test("can be the only way to the console, if there is a provider", () => {
    expect(readConfig({ ...env, PAYBELL_CONSOLE_SIGN_IN: "oidc" }).consoleSignIn).toBe("oidc");
    expect(problemsOf({ PAYBELL_CONSOLE_SIGN_IN: "oidc" })).toEqual([
      "PAYBELL_OIDC_ISSUER is required with PAYBELL_CONSOLE_SIGN_IN=oidc",
    ]);
  });
});

test("hosts are shown as they are written", () => {
  const hosts = "first.bank.example:5000, [2001:db8::1]:5001";
  const shown = shownSettings(readConfig({ PAYBELL_KAFKA_BROKERS: hosts, PAYBELL_KAFKA_TOPIC: "completions" }));
  expect(shown.find(({ name }) => name === "PAYBELL_KAFKA_BROKERS")).toMatchObject({ value: hosts });
});
