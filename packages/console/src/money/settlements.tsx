import { Link } from "wouter";
import type { SettlementRecord } from "../api/operations.ts";
import { Empty } from "../display/empty.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { State } from "../display/state.tsx";
import { ComingTime, Time } from "../display/time.tsx";
import { partnerColumn } from "../partners/partner-name.tsx";
import { AbortSettlement } from "./actions.tsx";
import { useMoney } from "./use-money.ts";

export const settlementSteps = {
  waiting: { tone: "wait", word: "Waits for running commands" },
  sending: { tone: "wait", word: "Sent: the acquirer has not answered" },
  uploading: { tone: "wait", word: "Totals differ: its batch is uploaded" },
} as const;

const columns: readonly ListColumn<SettlementRecord>[] = [
  { name: "State", show: ({ state }) => <State {...settlementSteps[state]} /> },
  { name: "Begun", show: ({ createdAt }) => <Time at={createdAt} />, look: "nowrap" },
  {
    name: "What",
    show: ({ id, kind, isUploaded }) => (
      <Link href={`/settlements/${id}`}>
        {kind === "SETTLEMENT" ? "Settlement" : "Batch Upload"}
        {isUploaded ? ", uploaded" : ""}
      </Link>
    ),
    look: "nowrap",
  },
  partnerColumn,
  { name: "Terminal", show: ({ tid }) => tid, look: "mono" },
  { name: "Tries", show: ({ tries }) => tries, look: "number", from: "tablet" },
  { name: "Next try", show: ({ dueAt }) => <ComingTime at={dueAt} />, look: "nowrap", from: "tablet" },
  { name: "Actions", show: ({ id }) => <AbortSettlement id={id} />, look: "actions" },
];

/** Settlements and uploads under way: of those that ended, the batches tell. */
export function Settlements({ partner }: { readonly partner: string | undefined }) {
  const { pages, items } = useMoney("settlements", { partner });
  return (
    <List
      of={pages}
      items={items}
      columns={columns}
      keyOf={({ id }) => id}
      to={({ id }) => `/settlements/${id}`}
      empty={
        <Empty title="No settlement is under way">
          One appears here until the acquirer has answered it; settled ones are listed under Batches.
        </Empty>
      }
    />
  );
}
