import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import {
  cardColumns,
  extensionColumns,
  settlementColumns,
  settlementListColumns,
} from "../packages/contract/src/fields/columns.ts";
import { bodyBytesMax, freshnessSecondsDefault } from "../packages/partner/src/receiver/options.ts";
import { defaultRetrySeconds, scheduleDays } from "../packages/server/src/config/retry-schedule.ts";
import { isTest, isTypeScript, listTree } from "./sources/files.ts";

const root = join(import.meta.dirname, "..");
const sources = listTree(join(root, "packages")).files.filter(
  (path) => /^[^/]+\/src\//.test(path) && isTypeScript(path) && !isTest(path),
);

/** The pattern of a definition, and the only sources that may contain it. */
test.each([
  [
    "the name of a cipher",
    /"aes-256-cbc"|aes-256-gcm, aes-256-cbc/,
    [
      "console/src/notifications/opening.ts",
      "contract/src/cryptography/seal.ts",
      "contract/src/cryptography/sealing.ts",
      "partner/src/certify/refused.ts",
      "partner/src/receiver/options.ts",
      // The cipher without authentication lowers a partner's protection.
      "server/src/partners/settings/settings.ts",
    ],
  ],
  ["the encoding of jwe", /"jwe" \? \(?\[?"?base64url/, ["contract/src/cryptography/sealing.ts"]],
  ["a partner's setting", /\bswipeTypes\??: (?:choice|described|z\.)/, ["server/src/partners/settings/settings.ts"]],
  [
    "a setting of a partner's reports",
    /\bzeroAmounts\??: (?:choice|described|z\.)/,
    ["server/src/partners/settings/settings.ts"],
  ],
  ["the default schedule of retries", /28_?800,\s*43_?200/, ["server/src/config/retry-schedule.ts"]],
  ["an error of every route with a body", /^\s+"unsupported_media_type",$/m, ["server/src/http/operation.ts"]],
  ["the list of commands", /"SALE",\s*"VOID",\s*"PREAUTH"/, ["contract/src/fields/commands.ts"]],
  [
    "which commands charge, and which can be voided",
    /SALE["'](?:,| \|| \|\| command ===) ["']PREAUTH_COMPLETE|"SALE", "PREAUTH"/,
    // The order in which a report's original is looked for is of its own.
    ["contract/src/fields/commands.ts", "server/src/ledger/reports/reports.ts"],
  ],
  ["a header of an IPN's POST", /\[headerNames\.attempt\]: /, ["contract/src/headers.ts"]],
  ["a sample card IPN", /cardScheme: "VISA"/, ["contract/src/fields/columns.ts"]],
  ["how a card command ends", /\bjudge\(outcome, signing\)/, ["server/src/commands/card-facts.ts"]],
])("%s is in one place", (_, definition, files) => {
  const found = sources.filter((path) => {
    const text = readFileSync(join(root, "packages", path), "utf8");
    return !text.startsWith("// Generated") && definition.test(text);
  });

  expect(found).toEqual(files);
});

const inClient = (path: string) => readFileSync(join(root, "clients", path), "utf8");
const types = ["SettlementEntry", "CardIpn", "SettlementIpn"];

test.each([
  ["Python", ["python/src/paybell/ipn.py"], /^ {4}(\w+): (?:str|list\[SettlementEntry\])$/gm],
  ["Go", ["go/ipn.go"], /^\t\w+ +(?:string|\[\]SettlementEntry) +`json:"(\w+)(?:,omitempty)?"`$/gm],
  ["PHP", types.map((type) => `php/src/${type}.php`), /public readonly (?:array|\??string) \$(\w+)/g],
  [
    "Java",
    types.map((type) => `java/src/main/java/example/paybell/${type}.java`),
    /(?:@JsonProperty\("(?=\w+"\) \w+ \w+)|(?<!"\) )(?:String|List<SettlementEntry>) )(\w+)/g,
  ],
])("the types of the package for %s have the fields of the tables, in their order", (_, files, field) => {
  const { card, settlement } = extensionColumns;
  const columns = [settlementListColumns, cardColumns, card, settlementColumns, settlement];

  const found = [...files.map(inClient).join("\n").matchAll(field)].map(([, name]) => name);

  expect(found).toEqual(columns.flatMap((list) => list.map(({ name }) => name)));
});

test("the picture of the retries has each wait of the default schedule, and the time until the last", () => {
  const picture = readFileSync(join(root, "docs/partner/retries.svg"), "utf8");
  const units = { s: 1, min: 60, h: 3_600, d: 86_400 };
  const waits = [...picture.matchAll(/>([\d.]+) (s|min|h|d) later</g)].map(
    ([, number, unit]) => Number(number) * units[unit as keyof typeof units],
  );

  expect(waits).toEqual(defaultRetrySeconds);
  expect(picture).toContain(`The ${waits.length + 1} attempts`);
  expect(picture).toContain(`after ${scheduleDays(waits).toFixed(1)} days`);
});

test("the constants of the package for PHP, which reads no file for them, are those of the others", () => {
  const constants = inClient("php/src/constants.php");
  const { sampleKeys } = JSON.parse(inClient("php/src/contract.json"));
  const keys = Object.entries(sampleKeys).map(([kind, key]) => `'${kind}' => '${key}'`);
  const numbers = [`FRESHNESS_SECONDS = ${freshnessSecondsDefault};`, `BODY_BYTES_MAX = ${bodyBytesMax};`];

  expect(keys).toHaveLength(3);
  for (const one of [...numbers, ...keys]) expect(constants).toContain(one);
});

test("every source is TypeScript whose types Node itself can strip", () => {
  expect(() => stripTypeScriptTypes("for (const of of [a, b]) c({ of });")).toThrow("cannot be empty");
  for (const path of sources.filter((one) => !one.endsWith(".tsx")))
    expect(() => stripTypeScriptTypes(readFileSync(join(root, "packages", path), "utf8")), path).not.toThrow();
});

test("the page of the first change names files, definitions and lines that are there", () => {
  const page = readFileSync(join(root, "docs/internals/first-change.md"), "utf8");
  const named = [...page.matchAll(/(?<!`)`([^`]+)`(?!`)/g)].map(([, name = ""]) => name);
  const isFile = (name: string) => /^[\w./-]+\.(?:ts|md)$/.test(name);
  const text = named.filter(isFile).map((path) => readFileSync(join(root, path), "utf8"));
  const isGiven = (name: string) => isFile(name) || /attemptsMade|^(?:npm|git) |^notifications: /.test(name);
  const others = named.filter((name) => !isGiven(name));
  const called = [...(/```js\n([\s\S]*?)```/.exec(page)?.[1]?.matchAll(/\w+(?=\()/g) ?? [])].map(
    ([name]) => `${name}(`,
  );
  expect(others.length).toBeGreaterThan(5);
  expect(called.length).toBeGreaterThan(4);

  for (const name of [...others, ...called]) {
    const definition = /^\w+$/.test(name) ? new RegExp(`(?:function|const|interface|type) ${name}\\b`) : undefined;
    const isThere = text.some((one) => definition?.test(one) ?? one.includes(name));
    expect(isThere, name).toBe(true);
  }
});

test("no folder has more than twelve files, apart from tests", () => {
  const folders = Map.groupBy(
    sources.filter((path) => !path.includes(".fixture.") && !path.endsWith(".d.ts")),
    dirname,
  );

  expect([...folders].filter(([, files]) => files.length > 12).map(([folder]) => folder)).toEqual([]);
});
