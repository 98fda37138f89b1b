import { serializer } from "./serializer.ts";
import type { SeenIpn, SeenStore } from "./store.ts";

/**
 * Records IPNs in this process only, until it ends: for tests, and for effects that end with the process too.
 *
 * @param ipnsMax beyond it the oldest are forgotten; default 100,000
 */
export function memoryStore(ipnsMax = 100_000): SeenStore<undefined> {
  const seenIpns = new Map<string, SeenIpn>();
  const chains = new Map<string, Set<SeenIpn>>();
  const inTurn = serializer();

  function remember(seen: SeenIpn): void {
    seenIpns.set(seen.id, seen);
    chains.set(seen.chain, (chains.get(seen.chain) ?? new Set()).add(seen));
    const [oldest] = seenIpns.values();
    if (seenIpns.size > ipnsMax && oldest !== undefined) forget(oldest);
  }

  function forget(seen: SeenIpn): void {
    seenIpns.delete(seen.id);
    const chain = chains.get(seen.chain);
    chain?.delete(seen);
    if (chain?.size === 0) chains.delete(seen.chain);
  }

  return {
    once: (seen, runs) =>
      inTurn(seen.chain, async () => {
        if (seenIpns.has(seen.id)) return "duplicate";
        const chain = chains.get(seen.chain) ?? [];
        await runs(
          undefined,
          [...chain].map(({ facts }) => facts),
        );
        remember(seen);
        return "processed";
      }),
  };
}
