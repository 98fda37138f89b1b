import type { KnownIpn } from "./store.ts";

// Not in store.ts: a process that only receives has the store in memory, and loads nothing of the others.

// A Complete at another terminal has that terminal's chain. A PreAuth and its Complete are therefore recorded a second
// time, in a chain of the PreAuth's id, as links to the chains that have them.

/**
 * @param known the other IPNs of its own chain: the Void of a Complete finds the PreAuth by these
 * @returns the chains of links to read, in the order in which to lock them, each after the IPN's own
 */
export function linksOf(facts: KnownIpn, known: readonly KnownIpn[]): string[] {
  const ids = new Set([facts, ...known].flatMap(({ preAuthId }) => preAuthId ?? []));
  return [...ids].map((id) => JSON.stringify(["PREAUTH", id])).sort();
}

/** Runs functions of the same name one after the other, in the order of the calls. */
export function serializer(): <Result>(name: string, run: () => Promise<Result>) => Promise<Result> {
  const last = new Map<string, Promise<unknown>>();
  return async (name, run) => {
    const before = last.get(name);
    const mine = before === undefined ? run() : before.then(run, run);
    last.set(name, mine);
    try {
      return await mine;
    } finally {
      if (last.get(name) === mine) last.delete(name);
    }
  };
}
