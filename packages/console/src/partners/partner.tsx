import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { Overview, ParkedOfPartner, Partner, Trouble } from "../api/operations.ts";
import type { ListColumn } from "../display/list.tsx";
import { useFilters } from "../display/page.tsx";
import { State } from "../display/state.tsx";
import { useSession } from "../session/session.ts";

/** By name; by id until the names are known. */
export function PartnerName({ id }: { readonly id: string }) {
  const name = usePartners().data?.find((one) => one.id === id)?.settings.name ?? id.slice(0, 8);
  return (
    <Link href={`/partners/${id}`} title={name}>
      {name}
    </Link>
  );
}

/** The column of a list of all partners, also on a phone. */
export const partnerColumnEverywhere: ListColumn<{ readonly partnerId: string | null }> = {
  name: "Partner",
  show: ({ partnerId }) => partnerId !== null && <PartnerName id={partnerId} />,
  look: "clipped",
};

/** The same where a phone has no room for it. */
export const partnerColumn = { ...partnerColumnEverywhere, from: "tablet" } as const;

/** The filter by partner, in the address. @param label left out: it is read out, and not seen */
export function PartnerFilter({ label }: { readonly label?: string }) {
  const { params, set } = useFilters();
  const partners = usePartners().data ?? [];
  return (
    <Select
      w={160}
      {...(label === undefined ? { "aria-label": "Partner" } : { label })}
      placeholder="Every partner"
      searchable
      clearable
      limit={100}
      nothingFoundMessage="No partner has this name"
      data={partners.map(({ id, settings }) => ({ value: id, label: settings.name }))}
      value={params.get("partner")}
      onChange={(partner) => set({ partner })}
    />
  );
}

const refreshMs = 10_000;

const states = {
  active: { tone: "good", word: "Active" },
  paused: { tone: "wait", word: "Paused" },
  disabled: { tone: "quiet", word: "Disabled" },
} as const;

/** A partner that accepts others again is no longer in trouble: what is parked waits for a person. */
export function isTask(of: Trouble | ParkedOfPartner): of is ParkedOfPartner {
  return "parked" in of && of.acceptedAt !== null;
}

/** What partners have not received, as the overview has it. */
export function useNotReceived(): Pick<Overview, "trouble" | "parked"> | undefined {
  return useQuery({
    queryKey: ["overview", "hour"],
    queryFn: () => api.getOverview({ span: "hour" }),
    refetchInterval: refreshMs,
  }).data;
}

/** Nobody is well who receives nothing, whatever the switch says. */
export function PartnerState({ of: { id, state } }: { readonly of: Pick<Partner, "id" | "state"> }) {
  const { trouble = [], parked = [] } = useNotReceived() ?? {};
  const isInTrouble = [...trouble, ...parked].some((one) => one.partnerId === id && !isTask(one));
  if (state === "active" && isInTrouble) return <State tone="bad" word="Not receiving" />;
  return <State {...states[state]} />;
}

const pageRows = 500;

/** All partners: their names are shown next to everything else. */
export function usePartners() {
  const isOperator = useSession().session.kind === "operator";
  return useQuery({ queryKey: ["partners"], queryFn: all, enabled: isOperator, staleTime: 30_000 });
}

async function all(): Promise<readonly Partner[]> {
  const partners: Partner[] = [];
  let after: string | undefined;
  do {
    const page = await api.listPartners({ limit: pageRows, ...(after !== undefined && { after }) });
    partners.push(...page.items);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return partners;
}
