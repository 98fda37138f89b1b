import { useQuery } from "@tanstack/react-query";
import { api } from "../api/call.ts";

/** Reversals and settlements that an acquirer has left open. */
export interface InDoubtCounts {
  readonly parked: number;
  readonly pending: number;
  readonly settlements: number;
  /** Only the newest of all acquirers were counted. */
  readonly isCut: boolean;
}

const counted = 500;
const lookEveryMs = 5_000;

/** Counts of each acquirer, by its name; undefined until they are known. */
export function useInDoubtCounts(): (acquirer: string) => InDoubtCounts | undefined {
  const { data } = useQuery({ queryKey: ["in-doubt"], queryFn: read, refetchInterval: lookEveryMs });
  return (acquirer) => {
    if (data === undefined) return undefined;
    const [parked = 0, pending = 0, settlements = 0] = data.map(
      ({ items }) => items.filter((item) => item.acquirer === acquirer).length,
    );
    return { parked, pending, settlements, isCut: data.some(({ next }) => next !== null) };
  };
}

function read() {
  return Promise.all([
    api.searchReversals({ state: "PARKED", limit: counted }),
    api.searchReversals({ state: "PENDING", limit: counted }),
    api.searchSettlements({ limit: counted }),
  ]);
}
