import { useQuery } from "@tanstack/react-query";
import { api } from "../api/call.ts";
import type { Overview, Partner } from "../api/operations.ts";
import { State } from "../display/state.tsx";

const lookEveryMs = 10_000;

const states = {
  active: { tone: "good", word: "Active" },
  paused: { tone: "wait", word: "Paused" },
  disabled: { tone: "quiet", word: "Disabled" },
} as const;

/** The partners in trouble now, as the overview has them. */
export function useTroubles(): Overview["trouble"] | undefined {
  const found = useQuery({
    queryKey: ["overview", "hour"],
    queryFn: () => api.getOverview({ span: "hour" }),
    refetchInterval: lookEveryMs,
  });
  return found.data?.trouble;
}

/** Nobody is well who receives nothing, whatever the switch says. */
export function PartnerState({ of: { id, state } }: { readonly of: Pick<Partner, "id" | "state"> }) {
  const isInTrouble = useTroubles()?.some(({ partnerId }) => partnerId === id) === true;
  if (state === "active" && isInTrouble) return <State tone="bad" word="Not receiving" />;
  return <State {...states[state]} />;
}
