import { Button } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { Link } from "wouter";
import { shownAmount } from "../display/amount.ts";
import { Empty } from "../display/empty.tsx";
import { Failure } from "../display/failure.tsx";
import { More } from "../display/more.tsx";
import { Loading, OpeningRow } from "../display/rows.tsx";
import { State } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { PartnerName } from "../partners/partner-name.tsx";
import { csvOf, download } from "./csv.ts";
import { useMoney } from "./use-money.ts";

export const transactionStates: Readonly<Record<string, { tone: "good" | "wait" | "bad"; word: string }>> = {
  SUCCESS: { tone: "good", word: "Success" },
  ERROR: { tone: "bad", word: "Declined" },
  INIT: { tone: "wait", word: "Under way" },
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
] as const;

export function Transactions({
  partner,
  state,
}: {
  readonly partner: string | undefined;
  readonly state: string | undefined;
}) {
  const { pages, items } = useMoney("transactions", partner, state);
  if (pages.isPending) return <Loading />;
  if (pages.isError && items.length === 0) return <Failure error={pages.error} onRetry={() => void pages.refetch()} />;
  if (items.length === 0)
    return <Empty title="No transaction">Each command of a partner makes one, and each that a switch reports.</Empty>;
  return (
    <>
      <Button
        size="compact-xs"
        variant="default"
        mb="xs"
        leftSection={<IconDownload size={14} aria-hidden />}
        onClick={() => download("transactions.csv", csvOf(csvColumns, items))}
      >
        Save these {items.length} as CSV
      </Button>
      <div className="table-scroll">
        <table className="dense-table">
          <thead>
            <tr>
              <th scope="col">State</th>
              <th scope="col">Created</th>
              <th scope="col">Command</th>
              <th scope="col" className="number">
                Amount
              </th>
              <th scope="col" className="wide">
                Partner
              </th>
              <th scope="col" className="wide">
                Terminal
              </th>
              <th scope="col" className="wide">
                refId
              </th>
              <th scope="col">Reversal</th>
            </tr>
          </thead>
          <tbody>
            {items.map((item) => (
              <OpeningRow key={item.id} to={`/transactions/${item.id}`}>
                <td>
                  <State {...(transactionStates[item.state] ?? { tone: "quiet", word: item.state })} />
                </td>
                <td className="nowrap">
                  <Time at={item.createdAt} />
                </td>
                <td className="nowrap">
                  <Link href={`/transactions/${item.id}`}>{item.command.replace("_", "-")}</Link>
                </td>
                <td className="number">{shownAmount(item.amount, item.currency)}</td>
                <td className="wide">
                  <div className="clipped">{item.partnerId !== null && <PartnerName id={item.partnerId} />}</div>
                </td>
                <td className="mono wide">{item.tid}</td>
                <td className="mono wide">{item.refId}</td>
                <td>{item.reversal ?? ""}</td>
              </OpeningRow>
            ))}
          </tbody>
        </table>
      </div>
      <More pages={pages} />
    </>
  );
}
