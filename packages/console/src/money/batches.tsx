import { Link } from "wouter";
import { shownMinor } from "../display/amount.ts";
import { Empty } from "../display/empty.tsx";
import { Failure } from "../display/failure.tsx";
import { More } from "../display/more.tsx";
import { Loading, OpeningRow } from "../display/rows.tsx";
import { Time } from "../display/time.tsx";
import { PartnerName } from "../partners/partner-name.tsx";
import { useMoney } from "./use-money.ts";

/** Settled batches with the totals that the acquirer took. */
export function Batches({ partner }: { readonly partner: string | undefined }) {
  const { pages, items } = useMoney("batches", partner, undefined);
  if (pages.isPending) return <Loading />;
  if (pages.isError && items.length === 0) return <Failure error={pages.error} onRetry={() => void pages.refetch()} />;
  if (items.length === 0)
    return (
      <Empty title="No batch was settled yet">A Settlement closes a terminal's batch; it appears here then.</Empty>
    );
  return (
    <>
      <div className="table-scroll">
        <table className="dense-table">
          <thead>
            <tr>
              <th scope="col">Batch</th>
              <th scope="col">Closed</th>
              <th scope="col" className="wide">
                Partner
              </th>
              <th scope="col">Terminal</th>
              <th scope="col" className="number">
                Sales
              </th>
              <th scope="col" className="number">
                Their total
              </th>
              <th scope="col" className="number wide">
                Voids
              </th>
              <th scope="col" className="number wide">
                Their total
              </th>
            </tr>
          </thead>
          <tbody>
            {items.map((item) => (
              <OpeningRow key={item.id} to={`/transactions/${item.settlementId}`}>
                <td>
                  <Link href={`/transactions/${item.settlementId}`}>{item.batchNo}</Link>
                </td>
                <td className="nowrap">
                  <Time at={item.closedAt} />
                </td>
                <td className="wide">
                  <div className="clipped">{item.partnerId !== null && <PartnerName id={item.partnerId} />}</div>
                </td>
                <td className="mono">{item.tid}</td>
                <td className="number">{item.saleQuantity}</td>
                <td className="number">{shownMinor(item.saleTotalMinor, item.currency)}</td>
                <td className="number wide">{item.voidQuantity}</td>
                <td className="number wide">{shownMinor(item.voidTotalMinor, item.currency)}</td>
              </OpeningRow>
            ))}
          </tbody>
        </table>
      </div>
      <More pages={pages} />
    </>
  );
}
