import type { Config } from "../config.ts";
import { hostText, isHostAndPort } from "./acquirer-kind.ts";
import { settings } from "./settings.ts";

/** The topics of settings, in the order of the reference: a setting belongs to the first that its name matches. */
export const settingSections: readonly (readonly [title: string, names: RegExp])[] = [
  ["Listeners", /_(HOST|PORT|OPERATOR_ADDRESSES|TRUSTED_PROXIES|PARTNERS_URL|DOCS)$|STOP_NOTICE/],
  [
    "Limits for callers",
    /_PER_MINUTE$|PROCESSOR_PERCENT|L_CONNECTIONS_MAX|UNREAD_BYTES|_(HEADERS|REQUEST|KEEP_ALIVE|ANSWER)_TIMEOUT_MS$/,
  ],
  ["Database", /DATABASE|_HOME$/],
  ["Master key", /MASTER_KEY|KMS|^AWS_/],
  ["Operators", /OPERATOR_TOKEN|KEY_PROPOSAL|OIDC|CONSOLE/],
  ["Acquirer and terminals", /ACQUIRER|PREAUTH|OPEN_TERMINALS|CLEARING/],
  ["Simulated acquirer", /SIMULATOR/],
  ["Completions from a switch", /INTAKE|KAFKA/],
  ["Delivery", /EGRESS|CALLBACK|SLOTS|WORKERS|BYTES_IN_FLIGHT|_(ATTEMPT|CONNECT|DRAIN)_TIMEOUT_MS$|RETRY/],
  ["Retention", /_DAYS$/],
  ["Alerts and events", /ALERT|_FEED$/],
  ["Logs, metrics and traces", /LOG_LEVEL|METRICS|^OTEL_/],
];

/** A setting as the console shows it. */
export interface ShownSetting {
  readonly name: string;
  /** Its topic. */
  readonly section: string;
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
      section: settingSections.find(([, names]) => names.test(setting.name))?.[0] ?? "",
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
