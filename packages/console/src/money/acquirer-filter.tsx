import { Select } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import { useQuery } from "@tanstack/react-query";
import { api } from "../api/call.ts";
import { useFilters } from "../display/page.tsx";

/** The filter by acquirer, in the address. Nothing is shown while there is only that of the settings. */
export function AcquirerFilter() {
  const { params, set } = useFilters();
  const value = params.get("acquirer");
  const registered = (useAcquirers().data?.items ?? []).map(({ name }) => name);
  if (registered.length === 0 && value === null) return null;
  // One that was removed still has transactions.
  const names = new Set([...registered, ...(value === null || value === ofSettings ? [] : [value])]);
  return (
    <Select
      w={190}
      aria-label="Acquirer"
      placeholder="Every acquirer"
      searchable
      clearable
      nothingFoundMessage="No acquirer has this name"
      data={[{ value: ofSettings, label: "That of the settings" }, ...names]}
      value={value}
      onChange={(acquirer) => set({ acquirer })}
    />
  );
}

/** The acquirer of the settings, in a filter by acquirer: no other has that name. */
export const ofSettings = "default";

const refreshMs = 5_000;

type Acquirers = Awaited<ReturnType<typeof api.listAcquirers>>;

export function useAcquirers(): UseQueryResult<Acquirers> {
  return useQuery({
    queryKey: ["acquirers"],
    queryFn: () => api.listAcquirers(),
    refetchInterval: refreshMs,
  });
}

/** The page with the transactions that went to it. */
export function transactionsOf(acquirer: string): string {
  return `/money?${new URLSearchParams({ tab: "transactions", acquirer })}`;
}
