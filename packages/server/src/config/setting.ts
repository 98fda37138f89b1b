import type { Kind } from "./kind.ts";

/** One setting of the service, read from one environment variable. */
export interface ServiceSetting<Value, Default = Value> {
  readonly name: string;
  readonly kind: Kind<Value>;
  /** The value if the variable is not set, or empty. */
  readonly default: Default;
  readonly unit?: string;
  readonly meaning: string;
  /** Its value is never shown, neither in an error nor in a log. */
  readonly secret?: true;
}

/** A setting with a default. */
export function setting<Value>(it: ServiceSetting<Value>): ServiceSetting<Value> {
  return it;
}

/** A setting that is null unless it is set. */
export function optional<Value>(it: Omit<ServiceSetting<Value>, "default">): ServiceSetting<Value, null> {
  return { ...it, default: null };
}
