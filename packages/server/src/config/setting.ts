import type { Kind } from "./kinds.ts";

/** One setting of the service, read from one environment variable. */
export interface Setting<Value, Initial extends Value | null = Value> {
  readonly name: string;
  readonly kind: Kind<Value>;
  /** The value if the variable is not set, or empty; null where there is none. */
  readonly default: Initial;
  readonly meaning: string;
  /** Its value is never shown, neither in an error nor in a log. It may be in a file, which `<name>_FILE` names. */
  readonly isSecret: boolean;
}

function settings(isSecret: boolean) {
  return <Value, Initial extends Value | null = null>(name: string, kind: Kind<Value>, initial = null as Initial) => ({
    /** Says in the reference what it is for. */
    means: (meaning: string): Setting<Value, Initial> => ({ name, kind, default: initial, meaning, isSecret }),
  });
}

export const setting = settings(false);
export const secret = settings(true);

/** Settings under one heading of the reference. */
export function section<Settings extends Readonly<Record<string, object>>>(title: string, list: Settings) {
  const entries = Object.entries(list).map(([key, one]) => [key, { ...one, section: title }] as const);
  // The keys are those of the list.
  return Object.fromEntries(entries) as { readonly [Key in keyof Settings]: Settings[Key] & { section: string } };
}
