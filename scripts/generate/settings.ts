import { type Setting, settings } from "../../packages/server/src/config/settings.ts";
import { code, type GeneratedFile, markdown, table } from "./document.ts";

/** Every setting of the service. */
export function settingsReference(): GeneratedFile {
  const list: readonly Setting<unknown, unknown>[] = Object.values(settings);
  return {
    path: "docs/reference/settings.md",
    text: markdown(
      "Settings",
      "Read once, at the start, from the environment. A variable that is set to nothing counts as not set. All " +
        "that is wrong is told at once, an unknown `PAYBELL_` name too. The value of a secret is never shown.",
      table(
        ["Name", "Value", "Default", "Meaning"],
        list.map((setting) => [code(setting.name), valueText(setting), defaultText(setting), setting.meaning]),
      ),
    ),
  };
}

function valueText({ kind, unit, secret }: Setting<unknown, unknown>): string {
  return [kind.description, unit === undefined ? "" : ` (${unit})`, secret === true ? "; a secret" : ""].join("");
}

function defaultText(setting: Setting<unknown, unknown>): string {
  const value = setting.default;
  const isEmpty = value === null || (Array.isArray(value) && value.length === 0);
  return isEmpty ? "not set" : code(String(value));
}
