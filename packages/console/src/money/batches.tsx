import { Link } from "wouter";
import type { BatchRecord } from "../api/operations.ts";
import { shownMinor } from "../display/amount.ts";
import { Empty } from "../display/empty.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Time } from "../display/time.tsx";
import { partnerColumn } from "../partners/partner-name.tsx";
import { useMoney } from "./use-money.ts";

const columns: readonly ListColumn<BatchRecord>[] = [
  { name: "Batch", show: ({ id, batchNo }) => <Link href={`/batches/${id}`}>{batchNo}</Link> },
  { name: "Closed", show: ({ closedAt }) => <Time at={closedAt} />, look: "nowrap" },
  partnerColumn,
  { name: "Terminal", show: ({ tid }) => tid, look: "mono" },
  { name: "Sales", show: ({ saleQuantity }) => saleQuantity, look: "number", from: "tablet" },
  { name: "Their total", show: ({ saleTotalMinor, currency }) => shownMinor(saleTotalMinor, currency), look: "number" },
  { name: "Voids", show: ({ voidQuantity }) => voidQuantity, look: "number", from: "tablet" },
  {
    name: "Total of Voids",
    show: ({ voidTotalMinor, currency }) => shownMinor(voidTotalMinor, currency),
    look: "number",
    from: "tablet",
  },
];

/** Settled batches with the totals that the acquirer took. */
export function Batches({ partner }: { readonly partner: string | undefined }) {
  const { pages, items } = useMoney("batches", { partner });
  return (
    <List
      of={pages}
      items={items}
      columns={columns}
      keyOf={({ id }) => id}
      to={({ id }) => `/batches/${id}`}
      empty={
        <Empty title="No batch was settled yet">A Settlement closes a terminal's batch; it appears here then.</Empty>
      }
    />
  );
}
