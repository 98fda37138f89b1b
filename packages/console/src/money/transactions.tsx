import { Button, Group } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { TransactionRecord } from "../api/operations.ts";
import { usePages } from "../api/query.ts";
import { shownAmount } from "../display/amount.ts";
import { csvOf, download } from "../display/csv.ts";
import { List, type ListColumn } from "../display/list.tsx";
import { State, type StateInWords, shownCommand, transactionStates } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { partnerColumn } from "../partners/partner.tsx";
import { pageOf } from "../shell/pages.ts";

/** A Reversal says more than the state of the transaction that it takes back. */
const reversalStates: Readonly<Record<string, StateInWords>> = {
  pending: { tone: "wait", word: "Being reversed" },
  done: { tone: "quiet", word: "Reversed" },
  parked: { tone: "bad", word: "In doubt" },
};

const csvColumns = [
  "id",
  "partnerId",
  "createdAt",
  "completedAt",
  "command",
  "state",
  "amount",
  "currency",
  "tid",
  "batchNo",
  "reqId",
  "externalId",
  "originalId",
  "isoResponseCode",
  "approveCode",
  "refId",
  "reversal",
  "acquirer",
] as const;

const columns: readonly ListColumn<TransactionRecord>[] = [
  {
    name: "State",
    show: ({ state, reversal }) => <State {...(reversalStates[reversal ?? ""] ?? transactionStates[state])} />,
  },
  { name: "Created", show: ({ createdAt }) => <Time at={createdAt} />, look: "nowrap" },
  {
    name: "Command",
    show: ({ id, command }) => <Link href={pageOf({ id, command })}>{shownCommand(command)}</Link>,
    look: "nowrap",
  },
  { name: "Amount", show: ({ amount, currency }) => shownAmount(amount, currency), look: "number" },
  partnerColumn,
  { name: "Terminal", show: ({ tid }) => tid, look: "mono", from: "tablet" },
  { name: "refId", show: ({ refId }) => refId, look: "mono", from: "tablet" },
];

/** The transactions of the ledger, the newest first, and what is shown of them as CSV. */
export function Transactions({
  filters,
  ...search
}: {
  readonly partner: string | undefined;
  readonly state?: TransactionRecord["state"] | undefined;
  readonly batch?: string;
  readonly acquirer?: string | undefined;
  /** In one row with what saves them. */
  readonly filters?: ReactNode;
}) {
  const found = usePages(["transactions", search], (page, options) =>
    api.searchTransactions({ ...search, ...page }, options),
  );
  const items = found.data?.items ?? [];
  return (
    <>
      {(filters !== undefined || items.length > 0) && (
        <Group gap="xs" mb="sm">
          {filters}
          {items.length > 0 && (
            <Button
              variant="default"
              leftSection={<IconDownload size={14} aria-hidden />}
              onClick={() => download("transactions.csv", csvOf(csvColumns, items), "text/csv")}
            >
              Save {items.length === 1 ? "it" : `these ${items.length}`} as CSV
            </Button>
          )}
        </Group>
      )}
      <List
        of={found}
        columns={columns}
        keyOf={({ id }) => id}
        to={pageOf}
        empty={["No transaction", "Each command of a partner makes one, and each that a switch reports."]}
      />
    </>
  );
}
