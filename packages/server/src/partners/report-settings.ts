import { z } from "zod";
import type { FieldProblem } from "../errors.ts";
import { invalid, isObject, tooLong, wrongType } from "./problems.ts";
import { choice, group, type PartnerSetting, type ValuesOf } from "./setting.ts";

const schemesMax = 64;
const schemeCharactersMax = 16;

/** The formats of the operator's switch in reports for a partner. */
const reportSettings = {
  identity: choice(
    ["externalId", "externalId+command"],
    "externalId",
    "externalId+command: a Sale and its Void may have one externalId",
  ),
  amounts: choice(["major", "minor"], "major", "minor: digits in the currency's smallest unit"),
  zeroAmounts: choice(["declined", "any"], "declined", "any: a verified card is a success of the amount 0"),
  responseCodes: choice(["1987", "1993"], "1987", "1993: isoResponseCode is an action code"),
  schemes: {
    initial: {},
    schema: z.record(z.string(), z.string()),
    meaning: "The cardScheme to send for a scheme beyond the specification's table, which is sent empty otherwise",
    check: schemesProblems,
  } as PartnerSetting<Readonly<Record<string, string>>>,
};

export type ReportSettings = ValuesOf<typeof reportSettings>;

/** The partner's setting `reports`, which contains all of these. */
export const reportsSetting = group(reportSettings, "How the operator's switch writes its reports");

const schemePattern = /^[^\p{Cc}&]*$/u;

function schemesProblems(field: string, value: unknown): FieldProblem[] {
  if (!isObject(value)) return [wrongType(field, "an object")];
  const entries = Object.entries(value);
  if (entries.length > schemesMax) return [tooLong(field, `has over ${schemesMax} schemes`)];
  return entries.flatMap(([name, scheme]) => {
    const path = `${field}.${name.slice(0, schemeCharactersMax)}`;
    if (typeof scheme !== "string") return [wrongType(path, "a text")];
    const fits = scheme.length <= schemeCharactersMax && name.length <= 2 * schemeCharactersMax;
    if (fits && [name, scheme].every((text) => schemePattern.test(text) && text.isWellFormed())) return [];
    return [
      invalid(path, `must have at most ${schemeCharactersMax} characters, none of them & or a control character`),
    ];
  });
}
