import type { FieldProblem } from "../errors.ts";
import type { ReportSettings } from "./partner.ts";

export const defaultReportSettings: ReportSettings = {
  identity: "externalId",
  amounts: "major",
  zeroAmounts: "declined",
  responseCodes: "1987",
  schemes: {},
};

const schemesMax = 64;
const schemeCharactersMax = 16;

const choices = {
  identity: ["externalId", "externalId+command"],
  amounts: ["major", "minor"],
  zeroAmounts: ["declined", "any"],
  responseCodes: ["1987", "1993"],
} as const satisfies Partial<{ [Name in keyof ReportSettings]: readonly ReportSettings[Name][] }>;

/** Everything wrong with the setting `reports`. */
export function reportSettingsProblems(field: string, value: unknown): FieldProblem[] {
  if (!isObject(value)) return [{ field, code: "wrong_type", message: `${field} must be an object.` }];
  return Object.entries(value).flatMap(([name, setting]) => {
    const path = `${field}.${name}`;
    if (setting === undefined) return [];
    if (name === "schemes") return schemesProblems(path, setting);
    if (!Object.hasOwn(choices, name)) {
      return [{ field: path, code: "unknown_field", message: `${path} is not a setting.` } as const];
    }
    const allowed: readonly unknown[] = choices[name as keyof typeof choices];
    return allowed.includes(setting) ? [] : [invalid(path, `must be one of ${allowed.join(", ")}`)];
  });
}

const schemePattern = /^[^\p{Cc}&]*$/u;

function schemesProblems(field: string, value: unknown): FieldProblem[] {
  if (!isObject(value)) return [{ field, code: "wrong_type", message: `${field} must be an object.` }];
  const entries = Object.entries(value);
  if (entries.length > schemesMax) {
    return [{ field, code: "too_long", message: `${field} has over ${schemesMax} schemes.` }];
  }
  return entries.flatMap(([name, scheme]) => {
    const path = `${field}.${name.slice(0, schemeCharactersMax)}`;
    if (typeof scheme !== "string")
      return [{ field: path, code: "wrong_type", message: `${path} must be a text.` } as const];
    const fits = scheme.length <= schemeCharactersMax && name.length <= 2 * schemeCharactersMax;
    if (fits && schemePattern.test(scheme)) return [];
    return [
      invalid(path, `must have at most ${schemeCharactersMax} characters, none of them & or a control character`),
    ];
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(field: string, rule: string): FieldProblem {
  return { field, code: "invalid_value", message: `${field} ${rule}.` };
}
