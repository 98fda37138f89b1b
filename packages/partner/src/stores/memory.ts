import { linksOf, serializer } from "./chains.ts";
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

  const keysOf = ({ chain, facts }: SeenIpn) => [chain, ...linksOf(facts, [])];
  const factsIn = (chain: string) => [...(chains.get(chain) ?? [])].map(({ facts }) => facts);

  function remember(seen: SeenIpn): void {
    seenIpns.set(seen.id, seen);
    for (const key of keysOf(seen)) chains.set(key, (chains.get(key) ?? new Set()).add(seen));
    const [oldest] = seenIpns.values();
    if (seenIpns.size > ipnsMax && oldest !== undefined) forget(oldest);
  }

  function forget(seen: SeenIpn): void {
    seenIpns.delete(seen.id);
    for (const key of keysOf(seen)) {
      const chain = chains.get(key);
      chain?.delete(seen);
      if (chain?.size === 0) chains.delete(key);
    }
  }

  return {
    once: (seen, runs) =>
      inTurn(seen.chain, async () => {
        if (seenIpns.has(seen.id)) return "duplicate";
        const links = linksOf(seen.facts, factsIn(seen.chain));
        // One PreAuth or its Complete at a time.
        return await inTurn(links.length === 0 ? `id ${seen.id}` : "PREAUTH", async () => {
          const linked = links.flatMap((link) => [...(chains.get(link) ?? [])].map(({ chain }) => chain));
          await runs(undefined, [...new Set([seen.chain, ...linked])].flatMap(factsIn));
          remember(seen);
          return "processed" as const;
        });
      }),
  };
}
