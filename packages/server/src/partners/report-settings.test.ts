import { expect, test } from "vitest";
import { reportsSetting } from "./report-settings.ts";
import { completeSettings, type PartnerInput } from "./settings.ts";

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
