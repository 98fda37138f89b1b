import { Group, Text } from "@mantine/core";
import { responseMeaning } from "@paybell/contract";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { EventRecord, SettlementDetail } from "../api/operations.ts";
import { shownMinor } from "../display/amount.ts";
import { Identifier } from "../display/copied.tsx";
import { List, type ListColumn, Table } from "../display/list.tsx";
import { Loaded } from "../display/loaded.tsx";
import { Fields, Page, Panel } from "../display/page.tsx";
import { State, type StateInWords } from "../display/state.tsx";
import { ComingTime, Time } from "../display/time.tsx";
import { PartnerName } from "../partners/partner.tsx";
import { AbortSettlement, ResolveSettlement, settlementSteps } from "./in-doubt.tsx";
import { Transactions } from "./transactions.tsx";

const refreshMs = 2_000;

/** One settlement, under way or ended: whether it was settled, and if not, why. */
export function SettlementPage({ id }: { readonly id: string }) {
  const found = useQuery({
    queryKey: ["settlement", id],
    queryFn: () => api.inspectSettlement(id),
    refetchInterval: ({ state: { data } }) => (data === undefined || data.dueAt === null ? false : refreshMs),
  });
  return (
    <Loaded
      of={found}
      missing={["There is no such settlement", "Its id is unknown, or it is older than the ledger keeps."]}
    >
      {(one) => (
        <Page
          title={`${one.kind === "SETTLEMENT" ? "Settlement" : "Batch Upload"} of ${one.tid}`}
          about={[
            one.batchNo !== null && `batch ${one.batchNo}`,
            shownMinor(String(one.totals.saleTotalMinor ?? 0), one.currency),
          ]
            .filter(Boolean)
            .join(" · ")}
          headline={<State {...outcomeOf(one)} />}
        >
          {one.dueAt !== null && (
            <Group>
              <AbortSettlement id={id} />
            </Group>
          )}
          {one.acceptedLate === "in_doubt" && (
            <Group>
              <ResolveSettlement id={id} />
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
                <Transactions partner={one.partnerId ?? undefined} batch={one.batchId} />
              </div>
            </Panel>
          )}
        </Page>
      )}
    </Loaded>
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

const eventColumns: readonly ListColumn<EventRecord>[] = [
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
    refetchInterval: refreshMs,
  });
  return (
    <List
      of={found}
      columns={eventColumns}
      keyOf={(event) => event.id}
      empty={["Nothing unusual", "A refusal, totals that differ and each decision appear here."]}
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
export function outcomeOf(one: SettlementDetail): StateInWords {
  const code = one.isoResponseCode ?? "";
  if (one.acceptedLate === "in_doubt")
    return {
      tone: "bad",
      word: "In doubt: the acquirer settled it after it was aborted, and its batch has changed",
    };
  if (one.acceptedLate === "closed")
    return {
      tone: "wait",
      word: "The acquirer settled it after it was aborted: the next Settlement reports it",
    };
  if (one.state === "refused")
    return { tone: "bad", word: `Not settled: ${code} ${responseMeaning(code)}; its batch is open again` };
  if (one.state !== "settled") return settlementSteps[one.state];
  if (one.origin === "switch") return { tone: "good", word: "Settled, as the switch reported" };
  if (differs(one)) return { tone: "good", word: "Settled by the uploaded batch: the acquirer had counted otherwise" };
  return { tone: "good", word: "Settled: the acquirer agreed with the totals" };
}

function differs({ totals, acquirerTotals }: SettlementDetail): boolean {
  if (acquirerTotals === null) return false;
  const figures = Object.keys(totals) as (keyof typeof totals)[];
  return figures.some((figure) => acquirerTotals[figure] !== null && acquirerTotals[figure] !== totals[figure]);
}

type Totals = SettlementDetail["totals"];
type Figure = keyof Totals;

const totalRows: readonly { readonly name: string; readonly figure: Figure; readonly isAmount: boolean }[] = [
  { name: "Sales and Completes", figure: "saleQuantity", isAmount: false },
  { name: "Their total", figure: "saleTotalMinor", isAmount: true },
  { name: "Voids", figure: "voidQuantity", isAmount: false },
  { name: "Total of Voids", figure: "voidTotalMinor", isAmount: true },
  { name: "Refunds", figure: "refundQuantity", isAmount: false },
  { name: "Total of Refunds", figure: "refundTotalMinor", isAmount: true },
];
type TotalRow = (typeof totalRows)[number];

/** Our totals of a batch beside the acquirer's, where it sent its own; what differs is marked. */
function TotalsTable({
  settlement: { totals, acquirerTotals: theirs, acquirerFields, currency, origin },
}: {
  readonly settlement: SettlementDetail;
}) {
  const shown = (of: Totals, { figure, isAmount }: TotalRow) => {
    const value = of[figure];
    if (value === null) return "–";
    return isAmount ? shownMinor(String(value), currency) : value;
  };
  const ours: ListColumn<TotalRow> = {
    name: origin === "switch" ? "As reported" : "This service",
    show: (row) => shown(totals, row),
    look: "number",
  };
  const columns: readonly ListColumn<TotalRow>[] = [
    { name: "What", show: ({ name }) => name },
    ours,
    ...(theirs === null
      ? []
      : [
          { name: "The acquirer", show: (row: TotalRow) => shown(theirs, row), look: "number" } as const,
          { name: "Difference", show: (row: TotalRow) => <Difference row={row} ours={totals} theirs={theirs} /> },
        ]),
  ];
  return (
    <>
      <Table items={totalRows} columns={columns} keyOf={({ figure }) => figure} />
      {theirs === null && acquirerFields === null && (
        <Text c="dimmed" size="xs" className="inside-note">
          The acquirer sent no totals of its own.
        </Text>
      )}
      {theirs === null && acquirerFields !== null && (
        <div className="inside-note">
          <Text c="dimmed" size="xs">
            The acquirer's own totals, as it sent them:
          </Text>
          {Object.entries(acquirerFields).map(([field, text]) => (
            <div key={field} className="mono wraps">
              field {field}: {text}
            </div>
          ))}
        </div>
      )}
    </>
  );
}

function Difference({
  row: { figure },
  ours,
  theirs,
}: {
  readonly row: TotalRow;
  readonly ours: Totals;
  readonly theirs: Totals;
}) {
  const [own, other] = [ours[figure], theirs[figure]];
  if (own === null || other === null) return null;
  return String(own) === String(other) ? <State tone="good" word="same" /> : <State tone="bad" word="differs" />;
}

/** One settled batch: the totals of both sides, and its transactions. */
export function BatchPage({ id }: { readonly id: string }) {
  const found = useQuery({
    queryKey: ["batch", id],
    queryFn: async () => {
      const batch = await api.inspectBatch(id);
      return { batch, settlement: await api.inspectSettlement(batch.settlementId).catch(() => undefined) };
    },
  });
  return (
    <Loaded
      of={found}
      missing={["There is no such batch", "Only settled batches have a page, as long as they are kept."]}
    >
      {({ batch, settlement }) => (
        <Page
          title={`Batch ${batch.batchNo} of ${batch.tid}`}
          about={shownMinor(batch.saleTotalMinor, batch.currency)}
          headline={
            <State
              {...(settlement === undefined
                ? { tone: "quiet", word: "Its settlement is no longer kept" }
                : outcomeOf(settlement))}
            />
          }
        >
          {settlement !== undefined && (
            <Panel title="Totals of both sides" flush>
              <TotalsTable settlement={settlement} />
            </Panel>
          )}
          <Panel title="Batch">
            <Fields
              of={{
                Partner: batch.partnerId !== null && <PartnerName id={batch.partnerId} />,
                Merchant: <span className="mono">{batch.mid}</span>,
                Closed: <Time at={batch.closedAt} exact />,
                Settlement: <Link href={`/settlements/${batch.settlementId}`}>Open it</Link>,
                "Its date at the acquirer": settlement?.settlementDate,
                Id: <Identifier id={batch.id} whole />,
              }}
            />
          </Panel>
          <Panel title="Its transactions" flush>
            <div className="inside">
              <Transactions partner={batch.partnerId ?? undefined} batch={id} />
            </div>
          </Panel>
        </Page>
      )}
    </Loaded>
  );
}
