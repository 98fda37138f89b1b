import type { Acquirer } from "./acquirer.ts";
import { noAcquirer } from "./none.ts";

/** The acquirers that commands go to, by name. The one of the settings has the empty name. */
export interface Acquirers {
  /** Always one to ask: in the place of one that is not there, nothing is sent. */
  of(name: string): Acquirer;
  has(name: string): boolean;
  /** Those that are there now. */
  names(): readonly string[];
}

/** The acquirer of the settings alone. Null: there is none, and commands are refused. */
export function onlyAcquirer(acquirer: Acquirer | null): Acquirers {
  const names = acquirer === null ? [] : [""];
  return {
    of: (name) => (name === "" ? (acquirer ?? noAcquirer) : noAcquirer),
    has: (name) => names.includes(name),
    names: () => names,
  };
}
