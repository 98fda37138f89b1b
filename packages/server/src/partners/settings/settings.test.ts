import { describe, expect, test } from "vitest";
import {
  completeSettings,
  defaultSettings,
  loweredSettings,
  type PartnerInput,
  type PartnerSettings,
  reportsSetting,
  scheduleProblems,
  settingsProblems,
} from "./settings.ts";

const production = { sandbox: false };
const least: PartnerInput = { name: "A partner", callbackAddresses: ["203.0.113.0/24"], callingAddresses: [] };

function problemsOf(input: Readonly<Record<string, unknown>>): [string, string][] {
  return settingsProblems({ ...least, ...input }, production).map(({ field, code }) => [field, code]);
}

describe("settings", () => {
  test("need a name and both address lists; everything else has a default", () => {
    expect(settingsProblems(least, production)).toEqual([]);
    expect(completeSettings(least)).toEqual({ ...defaultSettings, ...least });
    expect(settingsProblems({}, production).map(({ field, code }) => [field, code])).toEqual([
      ["name", "missing_field"],
      ["callbackAddresses", "missing_field"],
      ["callingAddresses", "missing_field"],
    ]);
  });

  test("merge the map of transaction types with the specification's", () => {
    expect(completeSettings({ ...least, transactionTypes: { PREAUTH_COMPLETE: "SETTLE" } }).transactionTypes).toEqual({
      SALE: "SALE",
      PREAUTH: "SALE",
      PREAUTH_COMPLETE: "SETTLE",
      REFUND: "REFUND",
      VOID: "VOID",
      VOID_PREAUTH: "CANCEL",
      SETTLEMENT: "SETTLE",
    });
  });

  test("take mail addresses as contacts, and a URL by the rules of a callback's", () => {
    const contactUrl = "https://203.0.113.7/contact";
    expect(problemsOf({ contactMails: ["ops@shop.example", "a.b+c@x.example"], contactUrl })).toEqual([]);
    const wrong = ["shop.example", "a@b@c.example", "a@x.example\r\nBcc: b@x.example", "Ops <a@x.example>", "a@x,b@y"];
    expect(problemsOf({ contactMails: wrong })).toEqual(wrong.map((_, at) => [`contactMails[${at}]`, "invalid_value"]));
    expect(problemsOf({ contactMails: Array(11).fill("a@x.example") })).toEqual([["contactMails", "too_long"]]);
    expect(problemsOf({ contactMails: "a@x.example" })).toEqual([["contactMails", "wrong_type"]]);
    expect(problemsOf({ contactUrl: "http://203.0.113.7/" })).toEqual([["contactUrl", "insecure_callback_url"]]);
    expect(problemsOf({ contactUrl: "https://198.51.100.7/" })).toEqual([["contactUrl", "address_not_whitelisted"]]);
  });

  test("complete are accepted as they are", () => {
    expect(settingsProblems(completeSettings(least), production)).toEqual([]);
  });

  test.each([
    ["name", "", "name", "invalid_value"],
    ["name", "a".repeat(201), "name", "too_long"],
    ["name", "a\u0000b", "name", "invalid_value"],
    ["name", 7, "name", "wrong_type"],
    ["callBackUrl", "http://partner.example/", "callBackUrl", "insecure_callback_url"],
    ["callBackUrl", "https://198.51.100.1/", "callBackUrl", "address_not_whitelisted"],
    ["callBackUrl", 7, "callBackUrl", "wrong_type"],
    ["callbackAddresses", [], "callbackAddresses", "invalid_value"],
    ["callbackAddresses", "10.0.0.0/8", "callbackAddresses", "wrong_type"],
    ["callbackAddresses", ["10.0.0.0/8", "10.0.0.0/99"], "callbackAddresses[1]", "invalid_value"],
    ["callingAddresses", [7], "callingAddresses[0]", "wrong_type"],
    ["callingAddresses", Array(257).fill("10.0.0.1"), "callingAddresses", "too_long"],
    ["cipher", "aes-256-ecb", "cipher", "invalid_value"],
    ["encoding", "utf8", "encoding", "invalid_value"],
    ["fields", "all", "fields", "invalid_value"],
    [
      "signing",
      { mode: "fields", card: ["id", "transaction_type", "status", "amount", "command"] },
      "signing",
      "invalid_signing",
    ],
    ["signing", "whole", "signing", "wrong_type"],
    ["signing", { mode: "none" }, "signing", "invalid_signing"],
    ["signing", { mode: "fields", card: "id" }, "signing.card", "wrong_type"],
    ["signing", { mode: "fields", cards: [] }, "signing.cards", "unknown_field"],
    ["signing", { mode: "whole", card: ["id"] }, "signing.card", "invalid_value"],
    [
      "signing",
      { mode: "fields", card: ["id", "transaction_type", "status", "amount", "extraData"] },
      "signing",
      "invalid_signing",
    ],
    ["wireNames", "camel", "wireNames", "invalid_value"],
    ["transactionTypes", { SALE: "CREDIT" }, "transactionTypes.SALE", "invalid_value"],
    ["transactionTypes", { LOGON: "SALE" }, "transactionTypes.LOGON", "unknown_field"],
    ["transactionTypes", [], "transactionTypes", "wrong_type"],
    ["swipeTypes", "CL", "swipeTypes", "invalid_value"],
    ["settlementTotal", "gross", "settlementTotal", "invalid_value"],
    ["transactionTime", "unix", "transactionTime", "invalid_value"],
    ["timeZone", "Mars/Olympus", "timeZone", "invalid_value"],
    ["timeZone", "+07:00", "timeZone", "invalid_value"],
    ["timeZone", null, "timeZone", "wrong_type"],
    ["ordering", "strict", "ordering", "invalid_value"],
    ["retry", [], "retry", "invalid_value"],
    ["retry", Array(31).fill(1), "retry", "invalid_value"],
    ["retry", [5, 0], "retry[1]", "invalid_value"],
    ["retry", [5, 86_401], "retry[1]", "invalid_value"],
    ["retry", [1.5], "retry[0]", "invalid_value"],
    ["retry", ["5"], "retry[0]", "wrong_type"],
    ["maxInFlight", 0, "maxInFlight", "invalid_value"],
    ["maxInFlight", 513, "maxInFlight", "invalid_value"],
    ["maxPerSecond", 0, "maxPerSecond", "invalid_value"],
    ["maxPerSecond", "10", "maxPerSecond", "wrong_type"],
    ["terminals", "closed", "terminals", "invalid_value"],
    ["colour", "red", "colour", "unknown_field"],
    ["toString", 1, "toString", "unknown_field"],
  ])("with %s %j: %s is %s", (name, value, field, code) => {
    expect(problemsOf({ [name]: value })).toContainEqual([field, code]);
  });

  test("name every problem at once", () => {
    expect(problemsOf({ name: "", cipher: "rot13", retry: [0], timeZone: "here" })).toEqual([
      ["name", "invalid_value"],
      ["cipher", "invalid_value"],
      ["retry[0]", "invalid_value"],
      ["timeZone", "invalid_value"],
    ]);
  });

  test.each([
    { signing: { mode: "fields", card: ["id", "transaction_type", "status", "amount", "tid"] } },
    { signing: { mode: "whole" } },
    {
      fields: "extended",
      signing: { mode: "fields", card: ["id", "command", "transaction_type", "status", "amount"] },
    },
    { timeZone: "Asia/Ho_Chi_Minh" },
    { retry: [1] },
    { maxPerSecond: null },
    { callBackUrl: null },
    { callBackUrl: "https://203.0.113.9/ipn" },
  ])("may be %j", (input) => {
    expect(problemsOf(input)).toEqual([]);
  });
});

test("a schedule must end a week before its history is dropped", () => {
  expect(scheduleProblems([86_400, 86_400], 9)).toEqual([]);
  expect(scheduleProblems([86_400, 86_400, 1], 9)).toEqual([
    {
      field: "retry",
      code: "invalid_value",
      message: "retry must last at most 2 days in all, 7 less than PAYBELL_HISTORY_DAYS (9).",
    },
  ]);
  // A value that is no schedule has other problems.
  for (const retry of [undefined, null, "5", ["5"], [[9]]]) expect(scheduleProblems(retry, 9)).toEqual([]);
});

const context = { rules: { sandbox: false }, values: {} };
const found = (value: unknown) =>
  reportsSetting.check("reports", value, context).map(({ field, code }) => `${field} ${code}`);

test.each<[unknown, string[]]>([
  [{}, []],
  [{ identity: "externalId+command", amounts: "minor", responseCodes: "1993", schemes: { NAPAS: "NAPAS" } }, []],
  [{ identity: undefined }, []],
  [[], ["reports wrong_type"]],
  ["minor", ["reports wrong_type"]],
  [{ amounts: "cents" }, ["reports.amounts invalid_value"]],
  [{ currencies: "numeric" }, ["reports.currencies unknown_field"]],
  [{ schemes: [] }, ["reports.schemes wrong_type"]],
  [{ schemes: { NAPAS: 1 } }, ["reports.schemes.NAPAS wrong_type"]],
  [{ schemes: { NAPAS: "A&B" } }, ["reports.schemes.NAPAS invalid_value"]],
  [{ schemes: { NAPAS: "x".repeat(17) } }, ["reports.schemes.NAPAS invalid_value"]],
  [{ schemes: { NAPAS: "\ud800" } }, ["reports.schemes.NAPAS invalid_value"]],
  [{ schemes: { "\0": "a" } }, ["reports.schemes.\0 invalid_value"]],
  [{ schemes: Object.fromEntries(Array.from({ length: 64 }, (_, at) => [`S${at}`, ""])) }, []],
  [
    { schemes: Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`S${at}`, ""])) },
    ["reports.schemes too_long"],
  ],
])("the setting reports %j: %j", (value, problems) => {
  expect(found(value)).toEqual(problems);
});

test("a setting that it does not name has its default", () => {
  const input: PartnerInput = { name: "A", callbackAddresses: [], callingAddresses: [], reports: { amounts: "minor" } };
  expect(completeSettings(input).reports).toEqual({
    identity: "externalId",
    amounts: "minor",
    zeroAmounts: "declined",
    responseCodes: "1987",
    schemes: {},
  });
});

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
