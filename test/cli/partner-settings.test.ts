import { afterAll, describe, expect, test } from "vitest";
import { defaultSettings, partnerSettings } from "../../packages/server/src/partners/settings/settings.ts";
import { CommandLine } from "./command-line.ts";

const line = new CommandLine({ PAYBELL_URL: "http://127.0.0.1:1", PAYBELL_OPERATOR_TOKEN: "token-of-the-tests" });
afterAll(() => line.remove());

/** Runs `partner set` with these flags. @returns what it sends */
async function sent(...flags: string[]): Promise<unknown> {
  let body: unknown;
  const answer: typeof fetch = async (_, init) => {
    if (init?.method === "PATCH") body = JSON.parse(String(init.body));
    return Response.json({ id: "1", state: "active", settings: { name: String(body) }, keys: [], createdAt: "" });
  };
  const id = "01a1fc40-577c-728c-bd54-142edc79a51f";
  const { code, stderr } = await line.run(["partner", "set", id, ...flags], { fetch: answer });
  expect(code, stderr).toBe(0);
  return body;
}

describe("the flags of `partner set` and `partner add`", () => {
  const flagOf = (name: string) => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const { reports, ...single } = partnerSettings;
  const parts = Object.entries(reports.schema).map(([name, part]) => [`reports-${name}`, part] as const);

  test.each(["set", "add"])("of `partner %s` are all settings, each with its meaning and default", async (name) => {
    const { stdout } = await line.run(["partner", name, "--help"]);
    const help = stdout.replaceAll(/\s+/g, " ");
    for (const [setting, { meaning, initial }] of [...Object.entries(single), ...parts]) {
      const described = `${meaning.replace("null:", "none:").replaceAll(/\s+/g, " ")} (`;
      expect(help).toContain(`${flagOf(setting)} <`);
      expect(help).toContain(described + (initial === undefined ? "required" : "default: "));
    }
  });

  test("take each default as the help shows it, and make the setting that it is", async () => {
    const { stdout } = await line.run(["partner", "set", "--help"]);
    const help = stdout.replaceAll(/\s+/g, " ");
    const flags = [...help.matchAll(/(--[a-z-]+) <[^>]+> (?:(?!--[a-z-]+ <).)*?\(default: ([^)]*)\)/g)];
    const typed = flags.flatMap(([, flag = "", value = ""]) => [flag, ...value.split(" ")]);
    expect(await sent(...typed)).toEqual(defaultSettings);
  });
});

describe("a value", () => {
  test.each([
    [["--callback-ports", "443", "8443"], { callbackPorts: [443, 8443] }],
    [["--callback-ports", "443,8443"], { callbackPorts: [443, 8443] }],
    [["--calling-addresses", "192.0.2.1/32,", "192.0.2.2/32"], { callingAddresses: ["192.0.2.1/32", "192.0.2.2/32"] }],
    [["--calling-addresses", ""], { callingAddresses: [""] }],
    [["--callback-ports", "none"], { callbackPorts: null }],
    [["--callback-pins", "none"], { callbackPins: [] }],
    [["--ordering", "none"], { ordering: "none" }],
    [["--signing", '{"mode": "fields", "card": ["id"]}'], { signing: { mode: "fields", card: ["id"] } }],
    [
      ["--call-back-url-by-command", "SALE=https://a.example/?b=c"],
      { callBackUrlByCommand: { SALE: "https://a.example/?b=c" } },
    ],
    [
      ["--reports-schemes", "ELO=VISA", "--reports-amounts", "minor"],
      { reports: { schemes: { ELO: "VISA" }, amounts: "minor" } },
    ],
  ])("of %j is sent as %j", async (flags, settings) => {
    expect(await sent(...flags)).toEqual(settings);
  });

  test("that begins with @ is a file's, and flags override the file of settings", async () => {
    line.write("ca.pem", "-----BEGIN CERTIFICATE-----\n");
    line.write("more.json", { maxInFlight: 3, reports: { amounts: "minor", identity: "externalId" } });
    const flags = ["--settings", "more.json", "--max-in-flight", "9", "--reports-amounts", "major"];
    expect(await sent("--callback-ca", "@ca.pem", ...flags)).toEqual({
      ...{ callbackCa: "-----BEGIN CERTIFICATE-----\n", maxInFlight: 9 },
      reports: { amounts: "major", identity: "externalId" },
    });
  });

  test.each([
    [["--max-in-flight", "many"], "--max-in-flight must be a whole number."],
    [["--transaction-types", "SALE"], "--transaction-types must be one or more name=text."],
    [["--signing", "{"], "--signing must be a word or JSON."],
    [["--cipher", "des"], "Allowed choices are aes-256-gcm, aes-256-cbc, jwe."],
    [["--callback-ca", "@missing.pem"], "missing.pem cannot be read: there is no such file."],
    [[], "no change is given."],
  ])("of %j is refused", async (flags, word) => {
    const { code, stderr } = await line.run(["partner", "set", "x", ...flags]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(word)]);
  });

  test.each(["set", "add"])("of `partner %s` that cannot be read name its own help", async (name) => {
    line.write("list.json", []);
    for (const flags of [
      ["--retry", "soon"],
      ["--settings", "list.json"],
    ]) {
      const { code, stderr } = await line.run(["partner", name, ...flags]);
      expect([code, stderr]).toEqual([2, expect.stringContaining(`\`paybell partner ${name} --help\``)]);
    }
  });
});
