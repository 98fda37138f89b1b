import { Box, Button, Group, Stack, TextInput } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api, CallError } from "../api/call.ts";
import type { Batch, Problem, Settlement, StatementLine, StatementTotals } from "../api/operations.ts";
import { shownAmount } from "../display/amount.ts";
import { download } from "../display/csv.ts";
import { List, type ListColumn, Table } from "../display/list.tsx";
import { Failure } from "../display/loaded.tsx";
import { Panel } from "../display/page.tsx";
import { Time } from "../display/time.tsx";

const linesShown = 500;
const meanings = { transaction: "", reversal: ", reversed", stands: ", stands" } as const;

/** Such as "316,000 (6)". */
function total<Item>(name: string, of: (item: Item) => readonly [quantity: number, amount: string]): ListColumn<Item> {
  const show = (item: Item) => {
    const [quantity, amount] = of(item);
    return quantity === 0 ? "" : `${shownAmount(amount, "")} (${quantity})`;
  };
  return { name, show, look: "number", from: "tablet" };
}

const lines: readonly ListColumn<StatementLine>[] = [
  { name: "When", show: ({ at }) => <Time at={at} />, look: "nowrap", from: "tablet" },
  { name: "Command", show: ({ command, kind }) => command + meanings[kind] },
  {
    name: "Status",
    show: ({ status, isoResponseCode }) => `${status} ${isoResponseCode}`,
    look: "nowrap",
    from: "tablet",
  },
  { name: "Order", show: ({ merchantTransId }) => merchantTransId, look: "clipped" },
  { name: "Terminal", show: ({ tid }) => tid, look: "mono", from: "tablet" },
  { name: "Batch", show: ({ batchNo }) => batchNo, look: "mono", from: "tablet" },
  { name: "Moves", show: ({ movement, currency }) => shownAmount(movement, currency), look: "number" },
  {
    name: "IPN",
    show: ({ notificationId }) => notificationId && <Link href={`/notifications/${notificationId}`}>Open</Link>,
  },
];
const sums: readonly ListColumn<StatementTotals | Batch>[] = [
  total("Sales", (one) => [one.saleQuantity, one.saleTotalAmount]),
  total("Voids", (one) => [one.voidQuantity, one.voidTotalAmount]),
  total("Refunds", (one) => [one.refundQuantity, one.refundTotalAmount]),
];
const totals: readonly ListColumn<StatementTotals>[] = [
  { name: "Currency", show: ({ currency }) => currency },
  ...sums,
  total("Reversed", (one) => [one.reversedQuantity, one.reversedTotalAmount]),
  { name: "Net", show: ({ netAmount, currency }) => shownAmount(netAmount, currency), look: "number" },
];
const batches: readonly ListColumn<Batch>[] = [
  { name: "Closed", show: ({ closedAt }) => <Time at={closedAt} />, look: "nowrap", from: "tablet" },
  { name: "Terminal", show: ({ tid }) => tid, look: "mono" },
  { name: "Batch", show: ({ batchNo }) => batchNo, look: "mono" },
  ...sums,
  { name: "Net", show: ({ netAmount, currency }) => shownAmount(netAmount, currency), look: "number" },
];
const settlements: readonly ListColumn<Settlement>[] = [
  { name: "Requested", show: ({ createdAt }) => <Time at={createdAt} />, look: "nowrap", from: "tablet" },
  { name: "Terminal", show: ({ tid }) => tid, look: "mono" },
  { name: "Batch", show: ({ batchNo }) => batchNo, look: "mono" },
  { name: "Status", show: ({ status, isoResponseCode }) => `${status} ${isoResponseCode}`, look: "nowrap" },
  {
    name: "IPN",
    show: ({ notificationId }) => notificationId && <Link href={`/notifications/${notificationId}`}>Open</Link>,
  },
];

/** A partner's own books: the statement of a day, the latest batches and settlements. */
export function Statements({ timeZone }: { readonly timeZone: string }) {
  const [date, setDate] = useState(() => new Intl.DateTimeFormat("sv-SE", { timeZone }).format(new Date()));
  const statement = useQuery({
    queryKey: ["statement", date],
    queryFn: ({ signal }) => api.getStatement(date, { signal }),
    enabled: /^\d{4}-\d\d-\d\d$/.test(date),
  });
  const closed = useQuery({ queryKey: ["own-batches"], queryFn: () => api.listBatches({ limit: 50 }) });
  const settled = useQuery({ queryKey: ["own-settlements"], queryFn: () => api.listSettlements({ limit: 50 }) });
  const csv = useMutation({ mutationFn: () => statementCsv(date) });
  const found = statement.data;
  const left = Math.max(0, (found?.lines.length ?? 0) - linesShown);
  return (
    <Stack gap="md">
      <Panel title="Statement of a day">
        <Group gap="xs" align="end" mb="sm">
          <TextInput
            type="date"
            label={`Day in ${timeZone}`}
            value={date}
            onChange={(event) => setDate(event.currentTarget.value)}
          />
          <Button variant="default" loading={csv.isPending} onClick={() => csv.mutate()}>
            Download CSV
          </Button>
          {found?.isComplete === false && <span className="state">The day is not over</span>}
        </Group>
        {csv.isError && <Failure error={csv.error} />}
        {found !== undefined && found.totals.length > 0 && (
          <Box mb="md">
            <Table items={found.totals} columns={totals} keyOf={({ currency }) => currency} />
          </Box>
        )}
        <List
          of={{ ...statement, data: found && { items: found.lines.slice(0, linesShown) } }}
          columns={lines}
          keyOf={({ id, kind }) => `${kind} ${id}`}
          empty={["Nothing was completed on this day", "Choose another day."]}
        />
        {left > 0 && <p>{left} more lines are in the CSV.</p>}
      </Panel>
      <Panel title="Settled batches">
        <List
          of={closed}
          columns={batches}
          keyOf={({ id }) => id}
          empty={["No batch was settled yet", "A Settlement closes a terminal's batch."]}
        />
      </Panel>
      <Panel title="Settlements">
        <List
          of={settled}
          columns={settlements}
          keyOf={({ id }) => id}
          empty={["No Settlement was requested yet", "Each appears here, also one that was refused."]}
        />
      </Panel>
    </Stack>
  );
}

/** As the service writes it. */
async function statementCsv(date: string): Promise<void> {
  const response = await fetch(`/v1/statements/${encodeURIComponent(date)}`, { headers: { accept: "text/csv" } });
  if (!response.ok) throw new CallError(response.status, (await response.json()) as Partial<Problem>, true);
  download(`statement-${date}.csv`, await response.text(), "text/csv");
}
