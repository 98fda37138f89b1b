import type { KnownIpn } from "./store.ts";

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
