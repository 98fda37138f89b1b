import type { ServiceSetting } from "../../packages/server/src/config/setting.ts";
import { settings } from "../../packages/server/src/config/settings.ts";
import { code, type GeneratedFile, markdown, table } from "./document.ts";

/** Every setting of the service. */
export function settingsReference(): GeneratedFile {
  const list: readonly ServiceSetting<unknown, unknown>[] = Object.values(settings);
  return {
    path: "docs/reference/settings.md",
    text: markdown(
      "Settings",
      "The settings are read from the environment, once, at the start. A variable with an empty value counts as not " +
        "set. One error names everything that is wrong, including unknown `PAYBELL_` names. The value of a secret is " +
        "never shown.",
      table(
        ["Name", "Value", "Default", "Meaning"],
        list.map((setting) => [code(setting.name), valueText(setting), defaultText(setting), setting.meaning]),
      ),
    ),
  };
}

function valueText({ kind, unit, secret }: ServiceSetting<unknown, unknown>): string {
  return [kind.description, unit === undefined ? "" : ` (${unit})`, secret === true ? "; a secret" : ""].join("");
}

function defaultText(setting: ServiceSetting<unknown, unknown>): string {
  const value = setting.default;
  const isEmpty = value === null || (Array.isArray(value) && value.length === 0);
  return isEmpty ? "not set" : code(String(value));
}
