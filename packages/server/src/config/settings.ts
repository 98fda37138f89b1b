import * as payments from "./payment-settings.ts";
import * as service from "./service-settings.ts";
import type { Setting } from "./setting.ts";

/** Every setting. `Config`, the errors at startup and the reference page are derived from this list. */
export const settings = {
  ...service.listeners,
  ...service.limits,
  ...service.database,
  ...service.masterKey,
  ...service.operators,
  ...payments.acquirers,
  ...payments.simulator,
  ...payments.completions,
  ...payments.delivery,
  ...payments.retention,
  ...service.alerts,
  ...service.observability,
};

type ValueOf<It> =
  It extends Setting<infer Value, infer Initial> ? (null extends Initial ? Value | null : Value) : never;
export type SettingKey = keyof typeof settings;

/** The configuration, read once at startup and passed in. Its secrets are printed and logged as "set". */
export type Config = { readonly [Key in SettingKey]: ValueOf<(typeof settings)[Key]> };
