import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { ClearingException } from "../api/operations.ts";
import { shownMinor } from "../display/amount.ts";
import { Confirm } from "../display/confirm.tsx";
import { Empty } from "../display/empty.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { State } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { useMay } from "../session/session.ts";

const rows = 50;
const kinds = {
  missing_here: "Missing here",
  missing_there: "Missing there",
  different: "Different",
  chargeback: "Chargeback",
} as const;

const columns: readonly ListColumn<ClearingException>[] = [
  { name: "Since", show: ({ createdAt }) => <Time at={createdAt} />, look: "nowrap" },
  { name: "Exception", show: ({ kind }) => kinds[kind], look: "nowrap" },
  { name: "State", show: (item) => <ExceptionState of={item} /> },
  { name: "Acquirer", show: ({ acquirer }) => acquirer || "That of the settings", from: "tablet" },
  {
    name: "Line",
    show: ({ line, fileId }) => line && <Link href={`/clearing/${fileId}`}>{`${line.kind}, line ${line.line}`}</Link>,
    from: "tablet",
  },
  { name: "Reference", show: ({ line }) => line?.refId, look: "mono" },
  { name: "Amount there", show: ({ line }) => line && shownMinor(line.minor, line.currency), look: "number" },
  { name: "Differences", show: ({ differences }) => <Differences of={differences} />, look: "prose" },
  {
    name: "Transaction",
    show: ({ transactionId }) => transactionId && <Link href={`/transactions/${transactionId}`}>Open</Link>,
  },
  { name: "Actions", show: (item) => <Resolve of={item} />, look: "actions" },
];

/** The differences between clearing files and the ledger, the newest first. */
export function ClearingExceptions(filter: {
  readonly state?: "open" | "resolved" | undefined;
  readonly acquirer?: string | undefined;
  readonly file?: string;
}) {
  const pages = useInfiniteQuery({
    queryKey: ["clearing-exceptions", filter],
    queryFn: ({ pageParam, signal }) =>
      api.searchClearingExceptions({ ...filter, limit: rows, after: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  return (
    <List
      of={pages}
      items={pages.data?.pages.flatMap((page) => page.items) ?? []}
      columns={columns}
      keyOf={({ id }) => id}
      empty={
        <Empty title="Both books agree">
          A line of a clearing file that differs from the ledger appears here, and a charge that no file has.
        </Empty>
      }
    />
  );
}

function ExceptionState({ of: { state, reason } }: { readonly of: ClearingException }) {
  if (state === "open") return <State tone="bad" word="Open" />;
  return (
    <span title={reason ?? undefined}>
      <State tone="good" word="Resolved" />
    </span>
  );
}

function Differences({ of }: { readonly of: ClearingException["differences"] }) {
  return of.map(({ field, here, there }) => (
    <div key={field}>
      {field}: {here || "nothing"} here, {there || "nothing"} there
    </div>
  ));
}

function Resolve({ of: { id, state } }: { readonly of: ClearingException }) {
  const mayAct = useMay("operator");
  const queries = useQueryClient();
  if (!mayAct || state !== "open") return null;
  return (
    <Confirm
      label="Resolve"
      title="Mark this exception as worked off?"
      text="No money moves by it: the reason says what was done, and the audit keeps it."
      needsReason
      onConfirm={(reason) => api.resolveClearingException(id, { reason }).then(() => queries.invalidateQueries())}
    />
  );
}
