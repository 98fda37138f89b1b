import { isDeepStrictEqual } from "node:util";
import type { PartnerSetting, SettingTable } from "../../packages/server/src/partners/setting.ts";
import { partnerSettings } from "../../packages/server/src/partners/settings.ts";
import type { GeneratedFile } from "./document.ts";
import { formatted } from "./formatted.ts";

/** The settings of a partner, for the flags of the command line, which runs without the service's package. */
export function partnerSettingFlags(): GeneratedFile {
  const rows = flagsOf(partnerSettings).map((flag) => `  ${JSON.stringify(flag)},`);
  return formatted({
    path: "packages/cli/src/partners/setting-flags.ts",
    text: [
      "// Generated from the settings of a partner in packages/server/src/partners by scripts/generate.ts.",
      'import type { SettingFlag } from "./settings.ts";',
      "",
      "export const settingFlags: readonly SettingFlag[] = [",
      ...rows,
      "];",
      "",
    ].join("\n"),
  });
}

function flagsOf(table: SettingTable, group?: string): object[] {
  return Object.entries(table).flatMap(([name, setting]) =>
    "toJSONSchema" in setting.schema && typeof setting.schema.toJSONSchema === "function"
      ? [{ name, ...(group !== undefined && { group }), ...kindOf(setting), ...rest(setting) }]
      : flagsOf(setting.schema as SettingTable, name),
  );
}

function rest({ meaning, initial }: PartnerSetting<unknown>): object {
  return { meaning, ...(initial !== undefined && { initial: textOf(initial) }) };
}

interface Shape {
  readonly type?: string | readonly string[];
  readonly enum?: readonly string[];
  readonly anyOf?: readonly Shape[];
  readonly items?: Shape;
}

/** The form of its value at the command line. */
function kindOf({ schema }: PartnerSetting<unknown>): object {
  const whole = (schema as { toJSONSchema(): Shape }).toJSONSchema();
  const isNull = ({ type }: Shape) => type === "null";
  const nullable = whole.anyOf?.some(isNull) === true || [whole.type].flat().includes("null");
  const shape = whole.anyOf?.length === 2 && nullable ? whole.anyOf.find((one) => !isNull(one)) : whole;
  const type = [shape?.type].flat().find((one) => one !== "null");
  const kind =
    type === "array" ? (shape?.items?.type === "integer" ? "numbers" : "list") : (kinds[type ?? ""] ?? "json");
  return { kind, ...(shape?.enum && { choices: shape.enum }), ...(nullable && { nullable }) };
}

const kinds: Readonly<Record<string, string>> = { string: "text", integer: "number", object: "map" };

function textOf(initial: unknown): string {
  if (initial === null || isDeepStrictEqual(initial, []) || isDeepStrictEqual(initial, {})) return "none";
  if (Array.isArray(initial)) return initial.join(" ");
  if (typeof initial !== "object") return String(initial);
  const pairs = Object.entries(initial as object);
  return pairs.length === 1 ? String(pairs[0]?.[1]) : pairs.map(([name, value]) => `${name}=${value}`).join(" ");
}
