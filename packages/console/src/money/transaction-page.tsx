import { Group, Text } from "@mantine/core";
import { responseMeaning } from "@paybell/contract";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { LinkedTransaction } from "../api/operations.ts";
import { shownAmount } from "../display/amount.ts";
import { Identifier } from "../display/copied.tsx";
import { Loaded } from "../display/loaded.tsx";
import { Fields, Page, Panel } from "../display/page.tsx";
import { State, shownCommand, transactionStates } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { PartnerName } from "../partners/partner.tsx";
import { RetryDoneReversal, ReversalActions } from "./in-doubt.tsx";
import { Moved, useBatch, useChain, useOwnTransaction } from "./moved.tsx";

/** A transaction in its chain, with the acquirer's answer, and what is still open. */
export function TransactionPage({ id }: { readonly id: string }) {
  const found = useChain(id);
  return (
    <Loaded
      of={found}
      missing={["There is no such transaction", "Its id is unknown, or it is older than the ledger keeps."]}
    >
      {(chain) => chain.filter((item) => item.id === id).map((one) => <Shown key={id} one={one} chain={chain} />)}
    </Loaded>
  );
}

function Shown({ one, chain }: { readonly one: LinkedTransaction; readonly chain: readonly LinkedTransaction[] }) {
  const { id } = one;
  return (
    <Page
      title={`${shownCommand(one.command)} ${shownAmount(one.amount, one.currency)}`}
      about={one.merchantTransId ?? ""}
      headline={<Moved id={id} />}
    >
      {one.reversal === "parked" && (
        <Text>
          Ask the acquirer whether it holds the amount. If it does, retry the Reversal; if it refuses for good to undo
          the transaction, this stands. If it does not, resolve it: the service then treats the transaction as not
          charged.
        </Text>
      )}
      {one.origin === "command" && (one.reversal === "parked" || one.reversal === "done") && (
        <Group>{one.reversal === "parked" ? <ReversalActions id={id} /> : <RetryDoneReversal id={id} />}</Group>
      )}
      <Chain of={id} chain={chain} />
      <Panel title="Transaction">
        <Fields
          of={{
            Transaction: <Identifier id={one.id} whole />,
            Partner: one.partnerId !== null && <PartnerName id={one.partnerId} />,
            Acquirer: one.acquirer || "that of the settings",
            "Its answer": one.isoResponseCode
              ? `${one.isoResponseCode}: ${responseMeaning(one.isoResponseCode)}`
              : "has not answered",
            "Approve code": one.approveCode && <span className="mono">{one.approveCode}</span>,
            refId: one.refId && <span className="mono">{one.refId}</span>,
            reqId: one.reqId && <Identifier id={one.reqId} whole />,
            externalId: one.externalId && <span className="mono">{one.externalId}</span>,
            "Terminal, batch": <span className="mono">{[one.tid, one.batchNo].filter(Boolean).join(", ")}</span>,
            "Came by": one.origin === "switch" ? "a report of the operator's switch" : "a command of the partner",
            Created: <Time at={one.createdAt} exact />,
            Completed: one.completedAt !== null && <Time at={one.completedAt} exact />,
            "Its own Reversal": one.reversal && <OwnReversal of={one} state={one.reversal} />,
            Settled: one.state === "SUCCESS" && one.batchId !== null && <Settled of={one} />,
            Notification:
              one.notificationId === null ? "none" : <Link href={`/notifications/${one.notificationId}`}>Open it</Link>,
          }}
        />
      </Panel>
    </Page>
  );
}

/** What became of the Reversal that the service made, and the acquirer's answer to it. That of a switch is in the chain. */
function OwnReversal({ of: { id, origin }, state }: { readonly of: LinkedTransaction; readonly state: string }) {
  const found = useQuery({
    queryKey: ["reversal", id],
    queryFn: () => api.inspectReversal(id),
    retry: false,
    enabled: origin === "command",
  });
  const { tries, responseCode } = found.data ?? {};
  return (
    <>
      {[
        state,
        tries !== undefined && `${tries} ${tries === 1 ? "try" : "tries"}`,
        responseCode != null && `the acquirer answered ${responseCode}: ${responseMeaning(responseCode)}`,
      ]
        .filter(Boolean)
        .join(", ")}
    </>
  );
}

/** The batch with which it was settled. */
function Settled({ of }: { readonly of: LinkedTransaction }) {
  const batch = useBatch(of);
  if (batch === null) return "…";
  return batch.state === "closed" ? (
    <Link href={`/batches/${of.batchId}`}>in batch {batch.batchNo}</Link>
  ) : (
    batchStates[batch.state](batch.batchNo)
  );
}

/** A partner's own transaction: whether its money moved, and whether it is settled. */
export function OwnTransactionPage({ id }: { readonly id: string }) {
  const found = useOwnTransaction(id);
  return (
    <Loaded of={found} missing={["There is no such transaction", "It may be older than the ledger keeps."]}>
      {(one) => {
        const text = (name: string) => String((one as unknown as Record<string, unknown>)[name] ?? "");
        const chain = one.chain.map((item) => ({ ...item, state: item.status, currency: text("currency") }));
        const answer = text("isoResponseCode");
        return (
          <Page
            title={`${shownCommand(one.command)} ${shownAmount(text("amount"), text("currency"))}`}
            about={text("merchantTransId")}
            headline={<Moved id={id} />}
          >
            <Chain of={id} chain={chain} />
            <Panel title="Transaction">
              <Fields
                of={{
                  Transaction: <Identifier id={id} whole />,
                  Settled: one.status === "SUCCESS" && one.batch && batchStates[one.batch.state](one.batch.batchNo),
                  "The acquirer's answer": answer && `${answer}: ${responseMeaning(answer)}`,
                  "Approve code": text("approveCode") && <span className="mono">{text("approveCode")}</span>,
                  refId: text("refId") && <span className="mono">{text("refId")}</span>,
                  reqId: <span className="mono">{text("reqId")}</span>,
                  Terminal: <span className="mono">{text("tid")}</span>,
                  Created: <Time at={one.createdAt} exact />,
                  Notification: one.notification && <Link href={`/notifications/${one.notification.id}`}>Open it</Link>,
                }}
              />
            </Panel>
          </Page>
        );
      }}
    </Loaded>
  );
}

const batchStates = {
  open: (batchNo: string) => `not yet: its batch ${batchNo} is open`,
  closing: (batchNo: string) => `not yet: its batch ${batchNo} is being settled`,
  closed: (batchNo: string) => `in batch ${batchNo}`,
} as const;

interface ChainItem {
  readonly id: string;
  readonly command: string;
  readonly state: LinkedTransaction["state"];
  readonly amount: string | null;
  readonly currency: string | null;
  readonly createdAt: string;
}

/** From the first command to those that refer to it. */
function Chain({ of, chain }: { readonly of: string; readonly chain: readonly ChainItem[] }) {
  return (
    <Panel title="Chain">
      <ol className="chain plain">
        {chain.map((item) => (
          <li key={item.id}>
            <Link
              href={`/transactions/${item.id}`}
              className="link-card"
              aria-current={item.id === of ? "page" : undefined}
            >
              <strong>{shownCommand(item.command)}</strong>
              <span>{shownAmount(item.amount, item.currency)}</span>
              <State {...transactionStates[item.state]} />
              <Text size="xs" c="dimmed" component="span">
                <Time at={item.createdAt} />
              </Text>
            </Link>
          </li>
        ))}
      </ol>
    </Panel>
  );
}
