import type { ServiceSetting } from "../../packages/server/src/config/setting.ts";
import { settings } from "../../packages/server/src/config/settings.ts";
import { settingSections } from "../../packages/server/src/config/shown.ts";
import { code, type GeneratedFile, markdown } from "./document.ts";
import { sectionTables } from "./sections.ts";

/** Every setting of the service. */
export function settingsReference(): GeneratedFile {
  const list: readonly ServiceSetting<unknown, unknown>[] = Object.values(settings);
  return {
    path: "docs/reference/settings.md",
    text: markdown(
      "Settings",
      "The service reads its settings from the environment, once, at the start. A variable with an empty value " +
        "counts as not set. One error names everything that is wrong, including unknown `PAYBELL_` names. The value " +
        "of a secret is never shown. `paybell check` tests the settings without starting the service.",
      "Each secret can be in a file instead, which a variable names whose name ends in `_FILE`: " +
        "`PAYBELL_MASTER_KEY_FILE` names the file that holds `PAYBELL_MASTER_KEY`. A process list and a crash report " +
        "show the environment, but no file.",
      "`OTEL_RESOURCE_ATTRIBUTES` and the exporter's `OTEL_EXPORTER_OTLP_TIMEOUT`, `_COMPRESSION`, `_CERTIFICATE`, " +
        "`_CLIENT_CERTIFICATE` and `_CLIENT_KEY` work as OpenTelemetry says " +
        "([traces](../operator/monitoring.md#traces)).",
      ...sectionTables(list, settingSections, {
        nameOf: ({ name }) => name,
        columns: ["Name", "Value", "Default", "Meaning"],
        rowOf: (setting) => [code(setting.name), valueText(setting), defaultText(setting), setting.meaning],
      }),
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
