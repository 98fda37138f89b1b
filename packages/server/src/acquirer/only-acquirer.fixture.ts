import { type Acquirer, type Acquirers, noAcquirer } from "./acquirer.ts";

/** Only the acquirer of the settings. Null: there is none. */
export function onlyAcquirer(acquirer: Acquirer | null): Acquirers {
  const names = acquirer === null ? [] : [""];
  return {
    of: (name) => (name === "" ? (acquirer ?? noAcquirer) : noAcquirer),
    has: (name) => names.includes(name),
    names: () => names,
  };
}
