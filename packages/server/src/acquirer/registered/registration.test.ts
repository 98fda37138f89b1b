import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { generate } from "selfsigned";
import { expect, test } from "vitest";
import {
  AcquirerRegistry,
  type AcquirerToStore,
  linkOptions,
  merged,
  mergedSecrets,
  noRegistration,
  noSecrets,
  registrationProblems,
} from "./registry.ts";

const path = join(import.meta.dirname, "../../../../../docs/operator/acquirer-profile.json");
const profile = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
const macKey = "0123456789abcdef0123456789abcdef";
const whole = { profile, hosts: ["bank.example:5000"] };

function problemsOf(input: Parameters<typeof merged>[1], name = "first-bank"): string[] {
  const problems = registrationProblems(name, merged(noRegistration, input), mergedSecrets(noSecrets, input));
  return problems.map(({ field }) => field);
}

test("an acquirer needs a name, a profile and hosts, and every problem is named", () => {
  expect(problemsOf(whole)).toEqual([]);
  expect(problemsOf({})).toEqual(["hosts", "profile"]);
  expect(problemsOf(whole, "default")).toEqual(["name"]);
  expect(problemsOf(whole, "First Bank")).toEqual(["name"]);
  expect(problemsOf({ ...whole, hosts: ["bank.example"] })).toEqual(["hosts"]);
  const hosts = (count: number) => Array.from({ length: count }, (_, nth) => `bank-${nth}.example:5000`);
  expect([10, 11].map((count) => problemsOf({ ...whole, hosts: hosts(count) }))).toEqual([[], ["hosts"]]);
  expect(problemsOf({ ...whole, profile: { ...profile, matchBy: [] } })).toEqual(["profile"]);
});

test("a profile that cannot tell two requests apart is refused, unless it is registered already", () => {
  const ambiguous = { ...whole, profile: { ...profile, matchBy: [7, 11] } };
  expect(problemsOf(ambiguous)).toEqual(Array.from({ length: 10 }, () => "profile"));
  const current = merged(noRegistration, ambiguous);
  const changed = merged(current, { hosts: ["other.example:1"] });
  expect(registrationProblems("first-bank", changed, noSecrets, current)).toEqual([]);
});

test("a setting without effect is named, unless its profile is registered already", () => {
  const clearing = { format: "csv", columns: { refId: 1, amount: 2, date: 3 }, currency: "VND" };
  const key = { encryption: "aes-kw", brings: { field: 70, values: [] }, key: { field: 48 }, checkValue: null };
  const keyExchange = { ...key, request: null, requestEveryMs: 60_000, belongsTo: "acquirer" };
  const padded = { algorithm: "aes-cmac", padding: "bit", networkMessages: true, keyExchange };
  const told = (change: object, current = noRegistration) =>
    registrationProblems(
      "first-bank",
      merged(noRegistration, { ...whole, profile: { ...profile, ...change } }),
      { ...noSecrets, macKey, keyEncryptionKey: macKey },
      current,
    ).map(({ field, message }) => `${field} ${message}`);
  const idle = [
    [{ kinds: { S: "sale" } }, /^profile clearing\.kinds: has no effect without clearing\.columns\.kind/],
    [
      { columns: { ...clearing.columns, kind: 4 } },
      /^profile clearing\.kinds: is required with clearing\.columns\.kind/,
    ],
    [{ columns: { ...clearing.columns, currency: 4 } }, /^profile clearing\.currency: has no effect beside/],
  ] as const;
  for (const [change, message] of idle) {
    expect(told({ clearing: { ...clearing, ...change } })).toEqual([expect.stringMatching(message)]);
  }
  const place = { from: 1, length: 8 };
  const columns = { refId: place, amount: place, date: place };
  expect(told({ clearing: { ...clearing, format: "fixed", delimiter: ";", columns } })).toEqual([
    "profile clearing.delimiter: has no effect in fixed columns",
  ]);
  expect(told({ mac: padded })).toEqual([
    "profile mac.padding: has no effect with aes-cmac, which has its own",
    "profile mac.keyExchange.requestEveryMs: has no effect without mac.keyExchange.request",
    "profile mac.keyExchange: no key ever comes: request is null, and brings.values is empty",
  ]);
  const current = merged(noRegistration, { ...whole, profile: { ...profile, mac: padded } });
  expect(told({ mac: padded }, current)).toEqual([]);
  expect(told({ clearing })).toEqual([]);
});

test("keys must fit their use, and no problem repeats one", () => {
  const withMac = { ...whole, profile: { ...profile, mac: { algorithm: "x9.19", networkMessages: true } } };
  expect(problemsOf(withMac)).toEqual(["macKey"]);
  expect(problemsOf({ ...withMac, macKey })).toEqual([]);
  expect(problemsOf({ ...withMac, macKey: "no key" })).toEqual(["macKey"]);
  const key48 = { field: 48 };
  const keyExchange = { encryption: "tdes-ecb", brings: { field: 70, values: ["101"] }, key: key48, checkValue: null };
  const mac = { ...withMac.profile.mac, keyExchange: { ...keyExchange, request: null, belongsTo: "connection" } };
  const withKeys = { ...withMac, macKey, profile: { ...profile, mac } };
  expect(problemsOf(withKeys)).toEqual(["keyEncryptionKey"]);
  expect(problemsOf({ ...withKeys, keyEncryptionKey: macKey })).toEqual([]);
  const { privateKey } = generateKeyPairSync("ed25519");
  const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  expect(problemsOf({ ...whole, key })).toEqual(["key"]);
  expect(problemsOf({ ...whole, key, certificate: "no certificate" })).toEqual(["certificate"]);
  // Both are shown to everybody who may read: programs write them into one file.
  expect(problemsOf({ ...whole, ca: key })).toContain("ca");
  expect(problemsOf({ ...whole, tls: "off", ca: key, certificate: key })).toEqual(["ca", "certificate"]);
  expect(problemsOf({ ...whole, ca: "no authority" })).toEqual(["ca"]);
  const registration = merged(noRegistration, { ...withMac, macKey: "00ff", key });
  const told = JSON.stringify(registrationProblems("first", registration, { ...noSecrets, key, macKey: "00ff" }));
  expect(told).not.toContain("00ff");
  expect(told).not.toContain("PRIVATE");
});

test("a change leaves values that it does not name; an empty string removes a value", () => {
  const current = merged(noRegistration, { ...whole, tls: "off", ca: "PEM", certificate: "PEM" });
  expect(merged(current, { hosts: ["other.example:1"] })).toEqual({ ...current, hosts: ["other.example:1"] });
  expect(merged(current, { ca: "" }).ca).toBe("");
  const secrets = { key: "PEM", macKey, keyEncryptionKey: macKey };
  expect(mergedSecrets(secrets, {})).toEqual(secrets);
  expect(linkOptions(merged(current, { tls: "off" }), { ...noSecrets, macKey })).toMatchObject({
    hosts: [{ host: "bank.example", port: 5000 }],
    tls: undefined,
    macKey: Buffer.from(macKey, "hex"),
  });
});

test("a certificate goes with its own key, and both go to the link", async () => {
  const { cert: certificate, private: key } = await generate([{ name: "commonName", value: "link" }], {
    keyType: "ec",
  });
  const other = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const mine = { ...whole, ca: certificate, certificate, key };
  expect(problemsOf(mine)).toEqual([]);
  expect(problemsOf({ ...mine, key: other })).toEqual(["key"]);
  expect(problemsOf({ ...mine, key: "no key" })).toEqual(["key"]);
  expect(problemsOf({ ...mine, ca: "no authority" })).toEqual(["ca"]);
  const registered = merged(noRegistration, mine);
  const secrets = { key, macKey, keyEncryptionKey: "00ff" };
  expect(linkOptions(registered, secrets)).toMatchObject({
    tls: { ca: certificate, cert: certificate, key },
    keyEncryptionKey: Buffer.from("00ff", "hex"),
  });
  expect(linkOptions(merged(registered, { ca: "", certificate: "" }), secrets).tls).toEqual({});
  expect(linkOptions(merged(registered, { tls: "off" }), secrets).tls).toBeUndefined();
});

test("there are at most a hundred acquirers, and one more can only be changed", async () => {
  const put = async (registered: number, current?: AcquirerToStore) => {
    const store = {
      put: async (name: string, next: (...known: [never, number]) => AcquirerToStore) => ({
        ...next((current && { ...current, name }) as never, registered),
        name,
      }),
    };
    const sealer = { sealNamed: (plain: Buffer) => plain, openNamed: (sealed: Buffer) => sealed };
    const { name } = await new AcquirerRegistry(store as never, sealer).put("first-bank", current ? {} : whole);
    return name;
  };
  expect(await put(99)).toBe("first-bank");
  await expect(put(100)).rejects.toMatchObject({ fields: [{ field: "name" }] });
  const current = { ...merged(noRegistration, whole), sealed: Buffer.from("{}"), isOtherMacKey: false };
  expect(await put(100, current)).toBe("first-bank");
});
