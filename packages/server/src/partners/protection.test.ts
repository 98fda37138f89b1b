import { expect, test } from "vitest";
import { loweredSettings } from "./protection.ts";
import { defaultSettings, type PartnerSettings } from "./settings.ts";

const pin = (letter: string) => `sha256/${letter.repeat(43)}=`;
const strict: PartnerSettings = {
  ...defaultSettings,
  name: "Corner Shop",
  callbackAddresses: ["203.0.113.0/24"],
  cipher: "aes-256-gcm",
  signing: { mode: "whole" },
  callbackCa: "PEM of the partner's authority",
  callbackPins: [pin("A"), pin("B")],
  callingAddresses: ["203.0.113.0/24", "2001:db8::/32"],
};
const few = ["id", "transaction_type", "status", "amount"];

test.each<[string, Partial<PartnerSettings>, Partial<PartnerSettings>]>([
  ["cipher", {}, { cipher: "aes-256-cbc" }],
  ["signing", {}, { signing: { mode: "fields" } }],
  ["signing", { signing: { mode: "fields" } }, { signing: { mode: "fields", card: few } }],
  ["callbackCa", {}, { callbackCa: null }],
  ["callbackCa", {}, { callbackCa: "PEM of another" }],
  ["callbackPins", {}, { callbackPins: [] }],
  ["callbackPins", {}, { callbackPins: [pin("A"), pin("B"), pin("C")] }],
  ["callingAddresses", {}, { callingAddresses: ["0.0.0.0/0"] }],
  ["callingAddresses", {}, { callingAddresses: ["203.0.113.0/24", "198.51.100.7"] }],
  ["callingAddresses", { callingAddresses: [] }, { callingAddresses: ["198.51.100.7"] }],
])("protection is lowered by %s: %o, then %o", (setting, before, change) => {
  const standing = { ...strict, ...before };
  expect(loweredSettings(standing, { ...standing, ...change })).toEqual([setting]);
});

test.each<[Partial<PartnerSettings>, Partial<PartnerSettings>]>([
  [{}, { cipher: "jwe" }],
  [{ cipher: "aes-256-cbc" }, { encoding: "base64" }],
  [{ cipher: "aes-256-cbc" }, { cipher: "aes-256-gcm" }],
  [{ signing: { mode: "fields", card: few } }, { signing: { mode: "fields", card: [...few, "tid"] } }],
  [{ callbackCa: null }, { callbackCa: "PEM of the partner's authority" }],
  [{ callbackPins: [] }, { callbackPins: [pin("A")] }],
  [{}, { callbackPins: [pin("B")] }],
  [{}, { callingAddresses: ["203.0.113.128/25", "2001:db8:1::/48"] }],
  [{}, { callBackUrl: "https://203.0.113.9/other", name: "Another name" }],
])("protection is not lowered: %o, then %o", (before, change) => {
  const standing = { ...strict, ...before };
  expect(loweredSettings(standing, { ...standing, ...change })).toEqual([]);
});
