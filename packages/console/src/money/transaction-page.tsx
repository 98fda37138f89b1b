import { Group, Text } from "@mantine/core";
import { responseMeaning } from "@paybell/contract";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { LinkedTransaction } from "../api/operations.ts";
import { shownAmount } from "../display/amount.ts";
import { Identifier } from "../display/copied.tsx";
import { Empty, isMissing, Loaded } from "../display/loaded.tsx";
import { Fields, Page, Panel } from "../display/page.tsx";
import { State } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { PartnerName } from "../partners/partner.tsx";
import { RetryDoneReversal, ReversalActions } from "./in-doubt.tsx";
import { transactionStates } from "./transactions.tsx";

const refreshMs = 5_000;

/** A transaction in its chain, with the acquirer's answer, and what is still open. */
export function TransactionPage({ id }: { readonly id: string }) {
  const found = useQuery({
    queryKey: ["chain", id],
    queryFn: async () => (await api.getChain(id)).items,
    refetchInterval: refreshMs,
  });
  return (
    <Loaded
      of={found}
      missing={
        <Empty title="There is no such transaction">Its id is unknown, or it is older than the ledger keeps.</Empty>
      }
    >
      {(chain) => chain.filter((item) => item.id === id).map((one) => <Shown key={id} one={one} chain={chain} />)}
    </Loaded>
  );
}

function Shown({ one, chain }: { readonly one: LinkedTransaction; readonly chain: readonly LinkedTransaction[] }) {
  const { id } = one;
  return (
    <Page
      title={`${one.command.replace("_", "-")} ${shownAmount(one.amount, one.currency)}`}
      about={one.merchantTransId ?? ""}
      headline={
        <State
          {...movedInWords(
            one,
            chain.filter(({ originalId }) => originalId === id),
          )}
        />
      }
    >
      {(one.reversal === "parked" || one.reversal === "done") && (
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
            "Its own Reversal": one.reversal,
            Settled: one.batchId && <Settled batchId={one.batchId} />,
            Notification:
              one.notificationId === null ? "none" : <Link href={`/notifications/${one.notificationId}`}>Open it</Link>,
          }}
        />
      </Panel>
    </Page>
  );
}

/** The batch with which it was settled. */
function Settled({ batchId }: { readonly batchId: string }) {
  const batch = useQuery({ queryKey: ["its-batch", batchId], queryFn: () => api.inspectBatch(batchId), retry: false });
  if (batch.data !== undefined)
    return (
      <Link href={`/batches/${batchId}`}>
        in batch {batch.data.batchNo}, <Time at={batch.data.closedAt} />
      </Link>
    );
  return <>{isMissing(batch.error) ? "not yet: its batch is open" : "…"}</>;
}

/** A partner's own transaction: whether its money moved, and whether it is settled. */
export function OwnTransactionPage({ id }: { readonly id: string }) {
  const found = useQuery({
    queryKey: ["own-transaction", id],
    queryFn: () => api.getTransaction(id),
    refetchInterval: refreshMs,
  });
  return (
    <Loaded
      of={found}
      missing={<Empty title="There is no such transaction">It may be older than the ledger keeps.</Empty>}
    >
      {(one) => {
        const text = (name: string) => String((one as unknown as Record<string, unknown>)[name] ?? "");
        const chain = one.chain.map((item) => ({ ...item, state: item.status, currency: text("currency") }));
        const isLater = (item: { readonly id: string }) => item.id > id;
        const answer = text("isoResponseCode");
        return (
          <Page
            title={`${one.command.replace("_", "-")} ${shownAmount(text("amount"), text("currency"))}`}
            about={text("merchantTransId")}
            headline={
              <State
                {...movedInWords({ ...one, state: one.status, isoResponseCode: answer || null }, chain.filter(isLater))}
              />
            }
          >
            <Chain of={id} chain={chain} />
            <Panel title="Transaction">
              <Fields
                of={{
                  Transaction: <Identifier id={id} whole />,
                  Settled: one.batch && batchStates[one.batch.state](one.batch.batchNo),
                  "The acquirer's answer": answer && `${answer}: ${responseMeaning(answer)}`,
                  "Approve code": <span className="mono">{text("approveCode")}</span>,
                  refId: <span className="mono">{text("refId")}</span>,
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
              <strong>{item.command.replace("_", "-")}</strong>
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

/** Whether its money moved, by its own state and by those that refer to it. */
function movedInWords(
  one: Pick<LinkedTransaction, "command" | "state" | "isoResponseCode"> & { readonly reversal: string | null },
  followers: readonly Pick<ChainItem, "command" | "state">[],
) {
  const good = (command: string) => followers.some((item) => item.command === command && item.state === "SUCCESS");
  if (one.reversal === "parked")
    return { tone: "bad", word: "In doubt: its Reversal was given up, and the acquirer may hold it" } as const;
  if (one.reversal === "pending")
    return { tone: "wait", word: "In doubt: it is being reversed at the acquirer" } as const;
  if (one.reversal === "done") return { tone: "quiet", word: "Reversed at the acquirer: no money moved" } as const;
  if (one.state === "INIT") return { tone: "wait", word: "Under way: the acquirer has not answered" } as const;
  if (one.state === "ERROR")
    return {
      tone: "bad",
      word: `Declined: ${one.isoResponseCode ?? "96"} ${responseMeaning(one.isoResponseCode ?? "96")}`,
    } as const;
  if (good("VOID")) return { tone: "quiet", word: "Approved, and undone by a Void since" } as const;
  if (good("REVERSAL")) return { tone: "quiet", word: "Approved, and undone by a Reversal since" } as const;
  if (good("PREAUTH_COMPLETE")) return { tone: "good", word: "Approved, and completed since" } as const;
  if (one.command === "PREAUTH") return { tone: "good", word: "Approved: the amount is held" } as const;
  return { tone: "good", word: "Approved by the acquirer" } as const;
}
