import { Group, Stack } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { ReversalRecord } from "../api/operations.ts";
import { Confirm } from "../display/confirm.tsx";
import { Empty } from "../display/empty.tsx";
import { Failure } from "../display/failure.tsx";
import { More } from "../display/more.tsx";
import { Panel } from "../display/panel.tsx";
import { Loading } from "../display/rows.tsx";
import { State } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { PartnerName } from "../partners/partner-name.tsx";
import { useMay } from "../session/session.ts";
import { useMoney } from "./use-money.ts";

/** Transactions that the acquirer has left open, and their actions. */
export function InDoubt() {
  return (
    <Stack gap="md">
      <Panel title="Reversals that were given up" flush>
        <Reversals state="PARKED" />
      </Panel>
      <Panel title="Reversals on their way" flush>
        <Reversals state="PENDING" />
      </Panel>
      <Panel title="Settlements under way" flush>
        <Settlements />
      </Panel>
    </Stack>
  );
}

function Reversals({ state }: { readonly state: ReversalRecord["state"] }) {
  const { pages, items } = useMoney("reversals", undefined, state);
  if (pages.isPending) return <Loading />;
  if (pages.isError && items.length === 0) return <Failure error={pages.error} onRetry={() => void pages.refetch()} />;
  if (items.length === 0) {
    return (
      <Empty title="None">
        {state === "PARKED"
          ? "A Reversal that the acquirer never answers is parked here: it may be retried, or resolved with a reason."
          : "A Reversal takes back what the acquirer may have done without an answer."}
      </Empty>
    );
  }
  return (
    <div className="table-scroll">
      <table className="dense-table">
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Since</th>
            <th scope="col">Transaction</th>
            <th scope="col" className="wide">
              Partner
            </th>
            <th scope="col" className="number">
              Tries
            </th>
            <th scope="col">
              <span className="unseen">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={item.id}>
              <td>
                <State
                  tone={item.state === "PARKED" ? "bad" : "wait"}
                  word={item.state === "PARKED" ? "Parked" : "On its way"}
                />
              </td>
              <td className="nowrap">
                <Time at={item.createdAt} />
              </td>
              <td>
                <Link href={`/transactions/${item.id}`}>
                  {item.id.slice(0, 8)}… on {item.tid}
                </Link>
              </td>
              <td className="wide">{item.partnerId !== null && <PartnerName id={item.partnerId} />}</td>
              <td className="number">{item.tries}</td>
              <td className="number">{item.state === "PARKED" && <ReversalActions id={item.id} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <More pages={pages} />
    </div>
  );
}

export function ReversalActions({ id }: { readonly id: string }) {
  const mayAct = useMay("operator");
  const queries = useQueryClient();
  const refresh = () => queries.invalidateQueries();
  if (!mayAct) return null;
  return (
    <Group gap="xs" justify="end" wrap="nowrap">
      <Confirm
        label="Retry"
        title="Send this Reversal to the acquirer again?"
        text="One transaction is reversed at the acquirer, if it stands there. Nothing is sent to the partner."
        onConfirm={async () => {
          await api.retryReversal(id);
          await refresh();
        }}
      />
      <Confirm
        label="Resolve"
        title="End this Reversal by hand?"
        text="The service takes one transaction as not standing at the acquirer. Ask the acquirer first."
        needsReason
        onConfirm={async (reason) => {
          await api.resolveReversal(id, { reason });
          await refresh();
        }}
      />
    </Group>
  );
}

function Settlements() {
  const mayAct = useMay("operator");
  const queries = useQueryClient();
  const { pages, items } = useMoney("settlements", undefined, undefined);
  if (pages.isPending) return <Loading />;
  if (pages.isError && items.length === 0) return <Failure error={pages.error} onRetry={() => void pages.refetch()} />;
  if (items.length === 0)
    return <Empty title="None">A Settlement or Batch Upload stands here until the acquirer has answered it.</Empty>;
  return (
    <div className="table-scroll">
      <table className="dense-table">
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col">Since</th>
            <th scope="col">Settlement</th>
            <th scope="col" className="wide">
              Partner
            </th>
            <th scope="col" className="number">
              Tries
            </th>
            <th scope="col">Next try</th>
            <th scope="col">
              <span className="unseen">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={item.id}>
              <td>
                <State tone="wait" word={item.state} />
              </td>
              <td className="nowrap">
                <Time at={item.createdAt} />
              </td>
              <td>
                <Link href={`/transactions/${item.id}`}>
                  {item.kind.replace("_", " ")} on {item.tid}
                </Link>
              </td>
              <td className="wide">{item.partnerId !== null && <PartnerName id={item.partnerId} />}</td>
              <td className="number">{item.tries}</td>
              <td className="nowrap">
                <Time at={item.dueAt} />
              </td>
              <td className="number">
                {mayAct && (
                  <Confirm
                    label="Abort"
                    title="End this settlement without an answer?"
                    text="It ends with code 96, its terminal's batch is open again, and an IPN says so."
                    needsReason
                    onConfirm={async (reason) => {
                      await api.abortSettlement(item.id, { reason });
                      await queries.invalidateQueries();
                    }}
                  />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <More pages={pages} />
    </div>
  );
}
