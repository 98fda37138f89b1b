import { Group, Stack, Text, Title } from "@mantine/core";
import { responseMeaning } from "@paybell/contract";
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { EventRecord, SettlementDetail } from "../api/operations.ts";
import { shownMinor } from "../display/amount.ts";
import { Empty } from "../display/empty.tsx";
import { Failure, isMissing } from "../display/failure.tsx";
import { Fields } from "../display/fields.tsx";
import { Identifier } from "../display/identifier.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Panel } from "../display/panel.tsx";
import { Loading } from "../display/rows.tsx";
import { State } from "../display/state.tsx";
import { ComingTime, Time } from "../display/time.tsx";
import { PartnerName } from "../partners/partner-name.tsx";
import { AbortSettlement } from "./actions.tsx";
import { settlementSteps } from "./settlements.tsx";
import { TotalsTable } from "./totals.tsx";
import { Transactions } from "./transactions.tsx";

const lookEveryMs = 2_000;

/** One settlement, under way or ended: whether it was settled, and if not, why. */
export function SettlementPage({ id }: { readonly id: string }) {
  const found = useQuery({
    queryKey: ["settlement", id],
    queryFn: () => api.inspectSettlement(id),
    refetchInterval: ({ state: { data } }) => (data === undefined || data.dueAt === null ? false : lookEveryMs),
  });
  useEffect(() => {
    document.title = "Settlement · Paybell";
  }, []);
  if (found.isPending) return <Loading />;
  if (found.isError && found.data === undefined) {
    if (isMissing(found.error))
      return (
        <Empty title="There is no such settlement">Its id is unknown, or it is older than the ledger keeps.</Empty>
      );
    return <Failure error={found.error} onRetry={() => void found.refetch()} />;
  }
  const one = found.data;
  return (
    <Stack gap="md">
      <Stack gap={6}>
        <Group gap="sm" align="baseline">
          <Title order={1}>
            {one.kind === "SETTLEMENT" ? "Settlement" : "Batch Upload"} of {one.tid}
          </Title>
          <Text>
            {one.batchNo !== null && `batch ${one.batchNo} · `}
            {shownMinor(String(one.totals.saleTotalMinor ?? 0), one.currency)}
          </Text>
        </Group>
        <Text fz={15} className="headline" component="div" role="status" aria-live="polite">
          <State {...outcomeOf(one)} />
        </Text>
      </Stack>
      {one.dueAt !== null && (
        <Group>
          <AbortSettlement id={id} />
        </Group>
      )}
      <Panel title="Totals of both sides" flush>
        <TotalsTable settlement={one} />
      </Panel>
      <Group align="stretch" gap="md" className="two-columns">
        <Panel title="What happened" flush>
          <Events id={id} />
        </Panel>
        <Panel title="Settlement">
          <About one={one} />
        </Panel>
      </Group>
      {one.batchId !== null && (
        <Panel title={`Its transactions: ${one.listed} in its settlementList`} flush>
          <div className="inside">
            <Transactions partner={one.partnerId ?? undefined} state={undefined} batch={one.batchId} />
          </div>
        </Panel>
      )}
    </Stack>
  );
}

function About({ one }: { readonly one: SettlementDetail }) {
  const code = one.isoResponseCode ?? "";
  return (
    <Fields
      of={{
        Partner: one.partnerId !== null && <PartnerName id={one.partnerId} />,
        Merchant: <span className="mono">{one.mid}</span>,
        Acquirer: one.acquirer || "that of the settings",
        "Its answer": code !== "" && `${code}: ${responseMeaning(code)}`,
        refId: one.refId,
        "Its date at the acquirer": one.settlementDate,
        "Tries of this step": one.tries,
        "Next try": one.dueAt !== null && <ComingTime at={one.dueAt} />,
        Begun: <Time at={one.createdAt} exact />,
        Ended: one.completedAt !== null && <Time at={one.completedAt} exact />,
        "Came by": one.origin === "switch" ? "a report of the operator's switch" : "a command of the partner",
        Batch: one.state === "settled" && one.batchId && <Link href={`/batches/${one.batchId}`}>Open it</Link>,
        Notification: one.notificationId && <Link href={`/notifications/${one.notificationId}`}>Open it</Link>,
        Id: <Identifier id={one.id} whole />,
      }}
    />
  );
}

const columns: readonly ListColumn<EventRecord>[] = [
  { name: "When", show: ({ at }) => <Time at={at} exact />, look: "nowrap" },
  {
    name: "What",
    show: ({ kind, detail }) => (
      <>
        {kind.replaceAll("_", " ")}
        <div className="mono">{inWords(detail)}</div>
      </>
    ),
    look: "wraps",
  },
];

function Events({ id }: { readonly id: string }) {
  const found = useQuery({
    queryKey: ["events", id],
    queryFn: () => api.searchEvents({ subject: id, limit: 50 }),
    refetchInterval: lookEveryMs,
  });
  return (
    <List
      of={found}
      items={found.data?.items ?? []}
      columns={columns}
      keyOf={(event) => event.id}
      empty={<Empty title="Nothing unusual">A refusal, totals that differ and each decision appear here.</Empty>}
    />
  );
}

const shownAbove = new Set(["tid", "batchNo", "totals", "acquirerTotals", "acquirerFigures"]);

/** The details that the totals above do not show. */
function inWords(detail: EventRecord["detail"]): string {
  return Object.entries(detail)
    .filter(([name, value]) => !shownAbove.has(name) && value !== "" && value !== null && value !== undefined)
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : String(value)}`)
    .join(", ");
}

/** Whether it was settled, in words. */
export function outcomeOf(one: SettlementDetail) {
  const code = one.isoResponseCode ?? "";
  if (one.state === "refused")
    return { tone: "bad", word: `Not settled: ${code} ${responseMeaning(code)}; its batch is open again` } as const;
  if (one.state !== "settled") return settlementSteps[one.state];
  if (one.origin === "switch") return { tone: "good", word: "Settled, as the switch reported" } as const;
  if (differs(one))
    return { tone: "good", word: "Settled by the uploaded batch: the acquirer had counted otherwise" } as const;
  return { tone: "good", word: "Settled: the acquirer agreed with the totals" } as const;
}

function differs({ totals, acquirerTotals }: SettlementDetail): boolean {
  if (acquirerTotals === null) return false;
  const figures = Object.keys(totals) as (keyof typeof totals)[];
  return figures.some((figure) => acquirerTotals[figure] !== null && acquirerTotals[figure] !== totals[figure]);
}
