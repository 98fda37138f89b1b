import { Link } from "wouter";
import type { ListedNotification } from "../api/operations.ts";
import { shownAmount } from "../display/amount.ts";
import { OpeningRow } from "../display/rows.tsx";
import { notificationStates, State } from "../display/state.tsx";
import { shownTime, Time, useNow } from "../display/time.tsx";
import { PartnerName } from "../partners/partner-name.tsx";
import { useSession } from "../session/session.ts";
import { reasonInWords } from "./words.ts";

/** Notifications with their distinguishing fields. */
export function NotificationTable({ items }: { readonly items: readonly ListedNotification[] }) {
  const isOperator = useSession().session.kind === "operator";
  return (
    <div className="table-scroll">
      <table className="dense-table">
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Created</th>
            <th scope="col">Order</th>
            <th scope="col" className="wide">
              Command
            </th>
            <th scope="col" className="number">
              Amount
            </th>
            {isOperator && (
              <th scope="col" className="wide">
                Partner
              </th>
            )}
            <th scope="col" className="wide">
              Merchant, terminal
            </th>
            <th scope="col" className="wide">
              Delivery
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <OpeningRow key={item.id} to={`/notifications/${item.id}`}>
              <td>
                <State {...notificationStates[item.state]} />
              </td>
              <td className="nowrap">
                <Time at={item.createdAt} />
              </td>
              <td>
                <div className="clipped">
                  <Link href={`/notifications/${item.id}`} title={item.subject.merchantTransId ?? item.id}>
                    {item.subject.merchantTransId || item.id.slice(0, 8)}
                  </Link>
                </div>
              </td>
              <td className="nowrap wide">{item.command.replace("_", "-")}</td>
              <td className="number">{shownAmount(item.subject.amount, item.subject.currency)}</td>
              {isOperator && (
                <td className="wide">
                  <div className="clipped">
                    <PartnerName id={item.partnerId} />
                  </div>
                </td>
              )}
              <td className="wide">
                <div className="clipped">
                  {[item.subject.merchantName, item.subject.tid].filter(Boolean).join(" · ")}
                </div>
              </td>
              <td className="wide">
                <div className="clipped long">
                  <Delivery item={item} />
                </div>
              </td>
            </OpeningRow>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Delivery({ item }: { readonly item: ListedNotification }) {
  const now = useNow();
  if (item.state === "accepted") return item.attemptsMade > 1 ? <>{item.attemptsMade} attempts</> : null;
  const parts = [
    item.attemptsMade === 0 ? "not tried yet" : item.attemptsMade === 1 ? "1 attempt" : `${item.attemptsMade} attempts`,
    item.lastReason === null ? null : reasonInWords(item.lastReason),
    item.nextAttemptAt === null ? null : `next ${shownTime(Date.parse(item.nextAttemptAt), now)}`,
  ];
  return <>{parts.filter((part) => part !== null).join(" · ")}</>;
}
