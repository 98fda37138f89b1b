import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { api } from "../api/call.ts";

/** The acquirer of the settings, in a filter by acquirer: no other has that name. */
export const ofSettings = "default";

const lookEveryMs = 5_000;

type Acquirers = Awaited<ReturnType<typeof api.listAcquirers>>;

export function useAcquirers(): UseQueryResult<Acquirers> {
  return useQuery({
    queryKey: ["acquirers"],
    queryFn: () => api.listAcquirers(),
    refetchInterval: lookEveryMs,
  });
}

/** The page with the transactions that went to it. */
export function transactionsOf(acquirer: string): string {
  return `/money?${new URLSearchParams({ tab: "transactions", acquirer })}`;
}
