import { Link } from "wouter";
import type { ListedNotification } from "../api/operations.ts";
import { shownAmount } from "../display/amount.ts";
import { List, type ListColumn, Table } from "../display/list.tsx";
import { notificationStates, State, shownCommand } from "../display/state.tsx";
import { shownTime, Time, useNow } from "../display/time.tsx";
import { partnerColumn } from "../partners/partner.tsx";
import { useSession } from "../session/session.ts";
import { reasonInWords, resultOf } from "./words.ts";

const columns: readonly ListColumn<ListedNotification>[] = [
  {
    name: "State",
    show: ({ state }) => <State {...notificationStates[state]} />,
    sortBy: ({ state }) => notificationStates[state].word,
  },
  {
    name: "Created",
    show: ({ createdAt }) => <Time at={createdAt} />,
    look: "nowrap",
    sortBy: ({ createdAt }) => createdAt,
  },
  {
    name: "Order",
    show: ({ id, subject }) => (
      <Link href={`/notifications/${id}`} title={subject.merchantTransId ?? id}>
        {subject.merchantTransId || id.slice(0, 8)}
      </Link>
    ),
    look: "clipped",
    sortBy: ({ subject }) => subject.merchantTransId,
  },
  { name: "Command", show: (item) => <Result item={item} />, from: "tablet", sortBy: resultOrder },
  {
    name: "Amount",
    show: ({ subject }) => shownAmount(subject.amount, subject.currency),
    look: "number",
    sortBy: ({ subject }) => (subject.amount === null ? null : Number(subject.amount)),
  },
  partnerColumn,
  {
    name: "Merchant, terminal",
    show: ({ subject }) => [subject.merchantName, subject.tid].filter(Boolean).join(" · "),
    look: "clipped",
    from: "desktop",
  },
  { name: "Delivery", show: (item) => <Delivery item={item} />, look: "prose", from: "tablet" },
];
const ownColumns = columns.filter((column) => column !== partnerColumn);

/** Notifications with their distinguishing fields. */
export function NotificationTable({
  items,
  ...selection
}: {
  readonly items: readonly ListedNotification[];
} & Pick<Parameters<typeof Table<ListedNotification>>[0], "selection">) {
  return <Table items={items} {...useTable()} {...selection} />;
}

/** The same of what a query found, in each of its states. */
export function NotificationList(list: Pick<Parameters<typeof List<ListedNotification>>[0], "of" | "empty">) {
  return <List {...list} {...useTable()} />;
}

function useTable() {
  const isOperator = useSession().session.kind === "operator";
  return {
    columns: isOperator ? columns : ownColumns,
    keyOf: ({ id }: ListedNotification) => id,
    to: ({ id }: ListedNotification) => `/notifications/${id}`,
  };
}

/** The command and its result: a Sale that was declined is delivered, too. */
function Result({ item }: { readonly item: ListedNotification }) {
  const result = resultOf(item);
  return (
    <>
      {shownCommand(item.command)}{" "}
      {result !== undefined && (
        <span className="result" data-tone={result.isGood ? "quiet" : "bad"} title={result.meaning}>
          {result.word}
        </span>
      )}
    </>
  );
}

function resultOrder(item: ListedNotification): string {
  return `${item.command} ${resultOf(item)?.word ?? ""}`;
}

function Delivery({ item }: { readonly item: ListedNotification }) {
  const now = useNow();
  if (item.state === "accepted") return item.attemptsMade > 1 ? <>{item.attemptsMade} attempts</> : null;
  const parts = [
    // Attempts of long ago may be dropped, or not be read yet; their reason says that there were some.
    item.attemptsMade > 0
      ? `${item.attemptsMade} ${item.attemptsMade === 1 ? "attempt" : "attempts"}`
      : item.lastReason === null && "not tried yet",
    item.lastReason !== null && reasonInWords(item.lastReason, item.lastHttpStatus),
    item.nextAttemptAt !== null && nextText(Date.parse(item.nextAttemptAt), now),
  ];
  return <>{parts.filter((part) => part !== false).join(" · ")}</>;
}

function nextText(atMs: number, nowMs: number): string {
  return atMs <= nowMs ? "next now" : `next ${shownTime(atMs, nowMs)}`;
}
