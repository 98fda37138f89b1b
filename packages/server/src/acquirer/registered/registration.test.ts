import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { linkOptions, merged, mergedSecrets, noRegistration, noSecrets, registrationProblems } from "./registry.ts";

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
  expect(problemsOf({ ...whole, profile: { ...profile, matchBy: [] } })).toEqual(["profile"]);
});

test("a profile that cannot tell two requests apart is refused, unless it is registered already", () => {
  const ambiguous = { ...whole, profile: { ...profile, matchBy: [7, 11] } };
  expect(problemsOf(ambiguous)).toEqual(Array.from({ length: 10 }, () => "profile"));
  const standing = merged(noRegistration, ambiguous);
  const changed = merged(standing, { hosts: ["other.example:1"] });
  expect(registrationProblems("first-bank", changed, noSecrets, standing)).toEqual([]);
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
  const standing = merged(noRegistration, whole);
  expect(merged(standing, { hosts: ["other.example:1"] })).toEqual({ ...standing, hosts: ["other.example:1"] });
  expect(merged({ ...standing, ca: "PEM" }, { ca: "" }).ca).toBe("");
  expect(mergedSecrets({ ...noSecrets, macKey }, {})).toEqual({ ...noSecrets, macKey });
  expect(linkOptions(merged(standing, { tls: "off" }), { ...noSecrets, macKey })).toMatchObject({
    hosts: [{ host: "bank.example", port: 5000 }],
    tls: undefined,
    macKey: Buffer.from(macKey, "hex"),
  });
});
