import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Till } from "../../till.fixture.ts";
import { layoutOf, Mapping } from "../mapping.ts";
import { Codec } from "../message/codec.ts";
import { matchProblems, ProfileError, readProfile, wantsCards } from "./read.ts";

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

/** The parts of a profile in the operator's guide, in their order. */
const guide = readFileSync(join(import.meta.dirname, "../../../../../../docs/operator/acquirer.md"), "utf8");
const parts = guide
  .split("<!-- held by packages/server/src/acquirer/iso8583/profile/read.test.ts -->")
  .slice(1)
  .map((block): Json => JSON.parse(/```json\n([^`]*)```/.exec(block)?.[1] ?? ""));

describe("a host's profile", () => {
  test("may have the parts that the guide shows: elements, a MAC with its defaults, its keys, a track", () => {
    const [elements, keyExchange, chip] = parts;
    const required = { algorithm: "x9.19", networkMessages: false };
    const mac = { ...required, field: "last", covers: "before", padding: "zeros", keyExchange: null };
    const base = JSON.parse(text) as Json;
    const read = (profile: Json) => readProfile(JSON.stringify(profile));
    expect(read({ ...base, mac: required }).mac).toEqual(mac);
    expect(read({ ...base, mac: { ...mac, keyExchange } }).mac?.keyExchange).toEqual(keyExchange);
    const wholeField = read({ ...base, mac: { ...mac, keyExchange: { ...keyExchange, key: { field: 48 } } } });
    expect(wholeField.mac?.keyExchange?.key).toEqual({ field: 48, from: 0, characters: null });
    const built = structuredClone(base);
    for (const part of ["fields", "structures", "answer"]) built[part] = { ...built[part], ...elements[part] };
    const { 48: _48, 62: _62, ...others } = built.messages.SALE.fields;
    built.messages.SALE.fields = { ...others, ...elements.messages.SALE.fields };
    const { fields } = new Mapping(read(built)).request(new Till().sale("tok_approve"));
    expect([fields.get(48), fields.get(62)]).toEqual(["01011tok_approve02003051", "DF0106303030303031"]);
    const withChip = structuredClone(base);
    Object.assign(withChip.fields, chip.fields);
    Object.assign(withChip.messages.SALE.fields, chip.messages.SALE.fields);
    const profile = read(withChip);
    const track2 = "A1B2C3D4E5F60718293A4B5C6D7E8F900112233445566778";
    const request = new Mapping(profile).request({ ...new Till().sale("tok_approve"), track2, emv: "9F2608" });
    const codec = new Codec(layoutOf(profile));
    expect(codec.unpack(codec.pack(request)).fields.get(35)).toBe(track2);
  });

  test("has the documented value of what it leaves out", () => {
    const clearing = { format: "csv", columns: { refId: 1, amount: 2, date: 3 }, currency: "VND" };
    const minimal = { ...JSON.parse(text), clearing } as Json;
    for (const name of ["settlementDate", "totals"]) delete minimal.answer[name];
    const profile = readProfile(JSON.stringify(minimal));
    expect(profile).toMatchObject({
      ...{ standard: "1987", structures: {}, declines: [], partialApprovals: "reverse" },
      encoding: { text: "ascii" },
      network: {
        ...{ sessions: "each", connections: 1 },
        hostRequests: { others: "40", advices: { "0420": "00", "0620": "00" } },
      },
      answer: { emv: null, settlementDate: null, totals: [] },
      timings: { reversalMarginMs: 15_000 },
      clearing: {
        ...{ encoding: "utf-8", delimiter: ",", skipLines: 0, header: false, kinds: {}, amounts: "major" },
        ...{ dates: "YYYYMMDD", daysMax: 3, voids: "left out" },
      },
    });
  });

  test.each([
    ["VOID", "{cardToken}", true],
    ["REVERSAL", "{expDate:4}", true],
    ["PREAUTH_COMPLETE", "{entryMode}", true],
    ["BATCH_UPLOAD", "{traceNo}", false],
    ["SALE", "{expDate}", false],
    ["PREAUTH", "{expDate}", false],
  ])("whose %s writes %s needs the card of a transaction later: %s", (message, template, isWanted) => {
    const profile = JSON.parse(text) as Json;
    profile.messages[message].fields["48"] = template;
    expect(wantsCards(readProfile(JSON.stringify(profile)))).toBe(isWanted);
  });

  test("that cannot tell two requests apart is used over one connection of one instance", () => {
    const profile = JSON.parse(text) as Json;
    Object.assign(profile, { matchBy: [11], network: { ...profile.network, connections: 2 } });
    expect(readProfile(JSON.stringify(profile)).network).toMatchObject({ sessions: "one", connections: 1 });
  });

  test("tells requests apart by the terminal and the trace number of every message", () => {
    const problemsOf = (change: (profile: Json) => void) => {
      const profile = JSON.parse(text) as Json;
      change(profile);
      return matchProblems(readProfile(JSON.stringify(profile)));
    };
    expect(problemsOf((it) => (it.matchBy = [11, 41]))).toEqual([]);
    expect(problemsOf((it) => (it.matchBy = [11])).length).toBe(10);
    expect(problemsOf((it) => delete it.messages.VOID.fields["41"])).toEqual([
      "matchBy: no field of messages.VOID named there has {tid}: two requests could get each other's answers",
    ]);
  });

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
    ...["{pinBlock}", "{emv}", "{track2}", "{pinBlock:16}"].map((value): [string, (profile: Json) => void, string] => [
      `${value} in traces`,
      (it) => {
        it.messages.SALE.fields["62"] = value;
        it.shownFields = [62];
      },
      "shownFields: field 62 holds card data",
    ]),
    ["a track in traces", (it) => (it.shownFields = [35]), "shownFields: field 35 holds card data"],
    [
      "something in the MAC's field",
      (it) => {
        it.mac = { algorithm: "x9.19", networkMessages: false };
        it.messages.SALE.fields["64"] = "00";
      },
      "messages.SALE.fields.64: it holds the MAC",
    ],
    [
      "an element of a field without structure",
      (it) => (it.messages.SALE.fields["61.01"] = "x"),
      "messages.SALE.fields.61.01: structures says nothing of field 61",
    ],
    [
      "an element beside its whole field",
      (it) => {
        it.structures = { 48: { form: "text", tagCharacters: 2, lengthDigits: 2 } };
        it.messages.SALE.fields["48.01"] = "x";
      },
      "messages.SALE.fields.48.01: field 48 is written as a whole too",
    ],
    [
      "a tag of another length in an answer",
      (it) => {
        it.structures = { 63: { form: "text", tagCharacters: 2, lengthDigits: 2 } };
        it.answer.refId = "63.001";
      },
      "answer.refId: a tag has 2 characters",
    ],
    [
      "BER-TLV in a field of characters",
      (it) => (it.structures = { 62: { form: "ber", values: "hex" } }),
      "structures.62: ber needs a field of bytes, and it is ans...999",
    ],
    [
      "several connections of one session",
      (it) => Object.assign(it.network, { connections: 2, sessions: "one" }),
      "network.connections: must be 1, because one session is one connection",
    ],
    [
      "several connections of a key that is one's own",
      (it) => {
        const keyExchange = { ...parts[1], belongsTo: "connection" };
        it.mac = { algorithm: "x9.19", networkMessages: false, keyExchange };
        it.network.connections = 2;
      },
      "network.connections: must be 1, because a key that belongs to a connection is one connection's",
    ],
    ["no pattern", (it) => (it.cardTokens = "("), "cardTokens: is not a regular expression"],
  ])("is refused with %s", (_, change, problem) => {
    expect(problemsWith(change)).toEqual([typeof problem === "string" ? problem : expect.stringMatching(problem)]);
  });

  test("is refused with every problem at once, each with its path", () => {
    const problems = problemsWith((it) => {
      it.currencies.USD.exponent = 0;
      it.shownFields = [2];
      for (const name of ["signOn", "echo", "signOff"]) it.network[name].fields["11"] = "{trace}";
    });
    expect(problems).toHaveLength(5);
  });

  test("is refused if it is not JSON", () => {
    expect(() => readProfile("{")).toThrow(ProfileError);
  });
});
