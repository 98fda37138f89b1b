import { useInfiniteQuery } from "@tanstack/react-query";
import { api } from "../api/call.ts";
import type { MoneyItem } from "../api/operations.ts";

const searches = {
  transactions: api.searchTransactions,
  batches: api.searchBatches,
  settlements: api.searchSettlements,
  reversals: api.searchReversals,
} as const;
export type MoneyKind = keyof typeof searches;

const rows = 50;

/** Pages of one kind, the newest first. Each kind has its own fields, so the caller names the type. */
export function useMoney<Item extends MoneyItem>(
  kind: MoneyKind,
  partner: string | undefined,
  state: string | undefined,
) {
  const pages = useInfiniteQuery({
    queryKey: ["money", kind, partner, state],
    queryFn: ({ pageParam, signal }) => searches[kind]({ limit: rows, partner, state, after: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  return { pages, items: (pages.data?.pages.flatMap((page) => page.items) ?? []) as Item[] };
}
