import { Text } from "@mantine/core";
import type { SettlementDetail } from "../api/operations.ts";
import { shownMinor } from "../display/amount.ts";
import { type ListColumn, Table } from "../display/list.tsx";
import { State } from "../display/state.tsx";

type Totals = SettlementDetail["totals"];
type Figure = keyof Totals;

const rows: readonly { readonly name: string; readonly figure: Figure; readonly isAmount: boolean }[] = [
  { name: "Sales and Completes", figure: "saleQuantity", isAmount: false },
  { name: "Their total", figure: "saleTotalMinor", isAmount: true },
  { name: "Voids", figure: "voidQuantity", isAmount: false },
  { name: "Total of Voids", figure: "voidTotalMinor", isAmount: true },
  { name: "Refunds", figure: "refundQuantity", isAmount: false },
  { name: "Total of Refunds", figure: "refundTotalMinor", isAmount: true },
];
type Row = (typeof rows)[number];

/** Our totals of a batch beside the acquirer's, where it sent its own; what differs is marked. */
export function TotalsTable({
  settlement: { totals, acquirerTotals: theirs, acquirerFields, currency, origin },
}: {
  readonly settlement: SettlementDetail;
}) {
  const shown = (of: Totals, { figure, isAmount }: Row) => {
    const value = of[figure];
    if (value === null) return "–";
    return isAmount ? shownMinor(String(value), currency) : value;
  };
  const ours: ListColumn<Row> = {
    name: origin === "switch" ? "As reported" : "This service",
    show: (row) => shown(totals, row),
    look: "number",
  };
  const columns: readonly ListColumn<Row>[] = [
    { name: "What", show: ({ name }) => name },
    ours,
    ...(theirs === null
      ? []
      : [
          { name: "The acquirer", show: (row: Row) => shown(theirs, row), look: "number" } as const,
          { name: "Difference", show: (row: Row) => <Difference row={row} ours={totals} theirs={theirs} /> },
        ]),
  ];
  return (
    <>
      <Table items={rows} columns={columns} keyOf={({ figure }) => figure} />
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
  readonly row: Row;
  readonly ours: Totals;
  readonly theirs: Totals;
}) {
  const [own, other] = [ours[figure], theirs[figure]];
  if (own === null || other === null) return null;
  return String(own) === String(other) ? <State tone="good" word="same" /> : <State tone="bad" word="differs" />;
}
