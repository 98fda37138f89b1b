import type { Acquirer } from "./acquirer.ts";
import { noAcquirer } from "./none.ts";

/** The acquirers that commands go to, by name. The one of the settings has the empty name. */
export interface Acquirers {
  /** Always returns one: for an unknown name, one that sends nothing. */
  of(name: string): Acquirer;
  has(name: string): boolean;
  /** The current ones. */
  names(): readonly string[];
}

/** Only the acquirer of the settings. Null: there is none, and commands are refused. */
export function onlyAcquirer(acquirer: Acquirer | null): Acquirers {
  const names = acquirer === null ? [] : [""];
  return {
    of: (name) => (name === "" ? (acquirer ?? noAcquirer) : noAcquirer),
    has: (name) => names.includes(name),
    names: () => names,
  };
}
