import { useInfiniteQuery } from "@tanstack/react-query";
import { api } from "../api/call.ts";
import type { BatchRecord, ReversalRecord, SettlementRecord, TransactionRecord } from "../api/operations.ts";

interface Records {
  readonly transactions: TransactionRecord;
  readonly batches: BatchRecord;
  readonly settlements: SettlementRecord;
  readonly reversals: ReversalRecord;
}

interface Filter<Item> {
  readonly partner?: string | undefined;
  readonly state?: (Item extends { readonly state: infer State } ? State : never) | undefined;
  readonly batch?: string | undefined;
  readonly acquirer?: string | undefined;
}

type Search<Item> = (
  query: Filter<Item> & { readonly limit: number; readonly after: string | undefined },
  options: Parameters<typeof api.searchTransactions>[1],
) => Promise<{ readonly items: readonly Item[]; readonly next: string | null }>;

const searches: { readonly [Kind in keyof Records]: Search<Records[Kind]> } = {
  transactions: api.searchTransactions,
  batches: api.searchBatches,
  settlements: api.searchSettlements,
  reversals: api.searchReversals,
};

const rows = 50;

/** Pages of one kind, the newest first. */
export function useMoney<Kind extends keyof Records>(kind: Kind, filter: Filter<Records[Kind]>) {
  const search: Search<Records[Kind]> = searches[kind];
  const pages = useInfiniteQuery({
    queryKey: ["money", kind, filter],
    queryFn: ({ pageParam, signal }) => search({ limit: rows, ...filter, after: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  return { pages, items: pages.data?.pages.flatMap((page) => page.items) ?? [] };
}
