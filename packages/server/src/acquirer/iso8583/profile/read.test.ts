import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ProfileError, readProfile } from "./read.ts";

const path = join(import.meta.dirname, "../../../../../../docs/operator/acquirer-profile.json");
const text = readFileSync(path, "utf8");

/** The problems of the documents' profile with something in it changed. */
function problemsWith(change: (profile: Json) => void): readonly string[] {
  const profile = JSON.parse(text) as Json;
  change(profile);
  try {
    readProfile(JSON.stringify(profile));
  } catch (error) {
    if (error instanceof ProfileError) return error.problems;
    throw error;
  }
  return [];
}

// biome-ignore lint/suspicious/noExplicitAny: each test reaches for another corner of the same JSON.
type Json = any;

describe("a host's profile", () => {
  test("is read from the file in the documents", () => {
    expect(readProfile(text).name).toBe("example-host");
  });

  test.each<[string, (profile: Json) => void, string | RegExp]>([
    ["a name that it does not have", (it) => (it.hostt = 1), /Unrecognized key: "hostt"/],
    [
      "no format",
      (it) => (it.fields["48"] = "an...9999"),
      /^fields\.48: is not a format such as n6, n\.\.19, ans\.\.\.999/,
    ],
    [
      "no field",
      (it) => (it.fields["129"] = "n6"),
      /^fields\.129: is not a field number: fields are numbered from 2 to 128/,
    ],
    [
      "no time zone",
      (it) => (it.localTimeZone = "Saigon"),
      "localTimeZone: is not a time zone, such as Asia/Ho_Chi_Minh",
    ],
    ["half a TPDU", (it) => (it.framing.tpdu = "6000"), "framing.tpdu: must be five bytes in hexadecimal, or empty"],
    ["no currency of ISO 4217", (it) => (it.currencies["ABC"] = it.currencies.VND), /currencies\.ABC: ISO 4217 has no/],
    [
      "fewer decimals than amounts have",
      (it) => (it.currencies.USD.exponent = 0),
      "currencies.USD.exponent: must be at least 2, or part of an amount would be lost",
    ],
    [
      "no value",
      (it) => (it.messages.SALE.fields["4"] = "{amuont}"),
      /^messages\.SALE\.fields\.4: there is no \{amuont\}/,
    ],
    [
      "half a value",
      (it) => (it.messages.SALE.fields["4"] = "{amount"),
      "messages.SALE.fields.4: a brace has no counterpart",
    ],
    [
      "an answer's type",
      (it) => (it.messages.SALE.mti = "0210"),
      /messages\.SALE\.mti: is not a message type of a request/,
    ],
    [
      "a processing code that a Reversal cannot repeat",
      (it) => (it.messages.VOID.fields["3"] = "{originalProcessingCode}"),
      "messages.VOID.fields.3: the processing code of a message that can be reversed must be written out",
    ],
    ["a card's token in traces", (it) => (it.shownFields = [48]), "shownFields: field 48 holds card data"],
    ["a track in traces", (it) => (it.shownFields = [35]), "shownFields: field 35 holds card data"],
    [
      "something in the MAC's field",
      (it) => {
        it.mac = { algorithm: "x9.19", networkMessages: false };
        it.messages.SALE.fields["64"] = "00";
      },
      "messages.SALE.fields.64: it holds the MAC",
    ],
    ["no pattern", (it) => (it.cardTokens = "("), "cardTokens: is not a regular expression"],
  ])("is refused with %s", (_, change, problem) => {
    expect(problemsWith(change)).toEqual([typeof problem === "string" ? problem : expect.stringMatching(problem)]);
  });

  test("is refused with every problem at once, each with its path", () => {
    const problems = problemsWith((it) => {
      it.currencies.USD.exponent = 0;
      it.shownFields = [2];
      it.network.echo.fields["11"] = "{trace}";
    });
    expect(problems).toHaveLength(3);
  });

  test("is refused if it is not JSON", () => {
    expect(() => readProfile("{")).toThrow(ProfileError);
  });
});
