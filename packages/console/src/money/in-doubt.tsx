import { Stack } from "@mantine/core";
import { Link } from "wouter";
import type { ReversalRecord } from "../api/operations.ts";
import { Empty } from "../display/empty.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Panel } from "../display/panel.tsx";
import { State } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { partnerColumn } from "../partners/partner-name.tsx";
import { ReversalActions } from "./actions.tsx";
import { Settlements } from "./settlements.tsx";
import { useMoney } from "./use-money.ts";

/** Transactions that the acquirer has left open, and their actions. */
export function InDoubt() {
  return (
    <Stack gap="md">
      <Panel title="Reversals that were given up" flush>
        <Reversals state="PARKED" />
      </Panel>
      <Panel title="Reversals in progress" flush>
        <Reversals state="PENDING" />
      </Panel>
      <Panel title="Settlements in progress" flush>
        <Settlements partner={undefined} />
      </Panel>
    </Stack>
  );
}

const columns: readonly ListColumn<ReversalRecord>[] = [
  {
    name: "State",
    show: ({ state }) =>
      state === "PARKED" ? <State tone="bad" word="Parked" /> : <State tone="wait" word="In progress" />,
    from: "tablet",
  },
  { name: "Since", show: ({ createdAt }) => <Time at={createdAt} />, look: "nowrap" },
  {
    name: "Transaction",
    show: ({ id, tid }) => (
      <Link href={`/transactions/${id}`}>
        {id.slice(0, 8)}… on {tid}
      </Link>
    ),
  },
  partnerColumn,
  { name: "Tries", show: ({ tries }) => tries, look: "number", from: "tablet" },
  { name: "Actions", show: ({ id, state }) => state === "PARKED" && <ReversalActions id={id} />, look: "actions" },
];

const meanings = {
  PARKED: "A Reversal that the acquirer never answers is parked here: it may be retried, or resolved with a reason.",
  PENDING: "A Reversal takes back what the acquirer may have done without an answer.",
} as const;

function Reversals({ state }: { readonly state: keyof typeof meanings }) {
  const { pages, items } = useMoney("reversals", { state });
  return (
    <List
      of={pages}
      items={items}
      columns={columns}
      keyOf={({ id }) => id}
      to={({ id }) => `/transactions/${id}`}
      empty={<Empty title="None">{meanings[state]}</Empty>}
    />
  );
}
