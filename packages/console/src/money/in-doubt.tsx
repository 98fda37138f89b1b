import { Group, Stack } from "@mantine/core";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { ReversalRecord, SettlementRecord } from "../api/operations.ts";
import { usePages } from "../api/query.ts";
import { shownAmount } from "../display/amount.ts";
import { Confirm } from "../display/confirm.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Panel } from "../display/page.tsx";
import { State, shownCommand } from "../display/state.tsx";
import { ComingTime, Time } from "../display/time.tsx";
import { partnerColumn } from "../partners/partner.tsx";
import { useMay } from "../session/session.ts";

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

const reversalColumns: readonly ListColumn<ReversalRecord>[] = [
  {
    name: "State",
    show: ({ state }) =>
      state === "PARKED" ? <State tone="bad" word="Parked" /> : <State tone="wait" word="In progress" />,
    from: "tablet",
  },
  { name: "Since", show: ({ createdAt }) => <Time at={createdAt} />, look: "nowrap", from: "tablet" },
  {
    name: "Transaction",
    show: ({ id, command, merchantTransId, reqId }) => (
      <Link href={`/transactions/${id}`}>
        {command && shownCommand(command)} {merchantTransId || reqId || id}
      </Link>
    ),
  },
  { name: "Amount", show: ({ amount, currency }) => shownAmount(amount, currency), look: "number" },
  partnerColumn,
  { name: "Terminal", show: ({ tid }) => tid, look: "mono", from: "tablet" },
  { name: "Tries", show: ({ tries }) => tries, look: "number", from: "tablet" },
  { name: "Actions", show: ({ id, state }) => state === "PARKED" && <ReversalActions id={id} />, look: "actions" },
];

const meanings = {
  PARKED: "A Reversal that the acquirer never answers is parked here: it may be retried, or ended with a reason.",
  PENDING: "A Reversal takes back what the acquirer may have done without an answer.",
} as const;

function Reversals({ state }: { readonly state: keyof typeof meanings }) {
  const found = usePages(["reversals", state], (page, options) => api.searchReversals({ state, ...page }, options));
  return (
    <List
      of={found}
      columns={reversalColumns}
      keyOf={({ id }) => id}
      to={({ id }) => `/transactions/${id}`}
      empty={["None", meanings[state]]}
    />
  );
}

export const settlementSteps = {
  waiting: { tone: "wait", word: "Waits for running commands" },
  sending: { tone: "wait", word: "Sent: the acquirer has not answered" },
  uploading: { tone: "wait", word: "Totals differ: its batch is uploaded" },
} as const;

const settlementColumns: readonly ListColumn<SettlementRecord>[] = [
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
  const found = usePages(["settlements", partner], (page, options) =>
    api.searchSettlements({ partner, ...page }, options),
  );
  return (
    <List
      of={found}
      columns={settlementColumns}
      keyOf={({ id }) => id}
      to={({ id }) => `/settlements/${id}`}
      empty={[
        "No settlement is under way",
        "One appears here until the acquirer has answered it; settled ones are listed under Batches.",
      ]}
    />
  );
}

/** Retries a Reversal that is done: the acquirer has the transaction in its books all the same. */
export function RetryDoneReversal({ id }: { readonly id: string }) {
  return (
    <Decision
      label="Reverse again"
      title="Send this Reversal to the acquirer once more?"
      text="It is done here. Send it again if the acquirer still has the transaction in its books."
      needsReason
      onConfirm={(reason) => api.retryReversal(id, { reason })}
    />
  );
}

/** Retries or ends a parked Reversal. */
export function ReversalActions({ id }: { readonly id: string }) {
  return (
    <Group gap="xs" justify="end">
      <Decision
        label="Retry"
        title="Send this Reversal to the acquirer again?"
        text="The acquirer is asked again to reverse one transaction. Nothing is sent to the partner."
        onConfirm={() => api.retryReversal(id, {})}
      />
      <Decision
        label="Resolve"
        title="End this Reversal manually?"
        text="The service then treats the transaction as not charged. Ask the acquirer first."
        needsReason
        onConfirm={(reason) => api.resolveReversal(id, { reason })}
      />
      <Decision
        label="It stands"
        title="Let this transaction stand, for good?"
        text="It counts from now on, and is not reversed again. No IPN says so: tell the partner, who may have got ERROR."
        needsReason
        onConfirm={(reason) => api.letReversalStand(id, { reason })}
      />
    </Group>
  );
}

/** Ends a settlement that the acquirer does not answer. */
export function AbortSettlement({ id }: { readonly id: string }) {
  return (
    <Decision
      label="Abort"
      title="End this settlement without an answer?"
      text="It ends with code 96, its terminal's batch is open again, and an IPN says so."
      needsReason
      onConfirm={(reason) => api.abortSettlement(id, { reason })}
    />
  );
}

/** Reopens a batch that the acquirer settled after the abort, and that has changed since. */
export function ResolveSettlement({ id }: { readonly id: string }) {
  return (
    <Decision
      label="Resolve"
      title="Let this terminal settle again?"
      text="The late answer is dropped, and the next Settlement asks the acquirer. First agree with it on what it has settled."
      needsReason
      onConfirm={(reason) => api.resolveSettlement(id, { reason })}
    />
  );
}

/** A confirmed action of an operator; other roles do not see it. */
function Decision(confirm: Parameters<typeof Confirm>[0]) {
  return useMay("operator") && <Confirm {...confirm} />;
}
