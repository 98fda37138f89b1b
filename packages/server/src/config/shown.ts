import type { Config } from "../config.ts";
import { hostText, isHostAndPort } from "./acquirer-kind.ts";
import { settings } from "./settings.ts";

/** A setting as the console shows it. */
export interface ShownSetting {
  readonly name: string;
  /** Null: not set. For a secret only whether it is set. */
  readonly value: string | null;
  readonly default: string | null;
  readonly source: "environment" | "default";
  readonly unit: string | null;
  readonly meaning: string;
}

/** Every setting without its secrets, in the order of the reference. */
export function shownSettings(config: Config): readonly ShownSetting[] {
  return Object.entries(settings).map(([key, setting]) => {
    const value: unknown = config[key as keyof Config];
    const isDefault = JSON.stringify(value) === JSON.stringify(setting.default);
    const isSecret = "secret" in setting && setting.secret === true;
    return {
      name: setting.name,
      value: isSecret && !isDefault ? "set" : shown(value),
      default: shown(setting.default),
      source: isDefault ? "default" : "environment",
      unit: "unit" in setting ? (setting.unit ?? null) : null,
      meaning: setting.meaning,
    };
  });
}

function shown(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map((item: unknown) => shown(item)).join(", ");
  return isHostAndPort(value) ? hostText(value) : String(value);
}
