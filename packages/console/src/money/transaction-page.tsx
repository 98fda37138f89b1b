import { Group, Stack, Text, Title } from "@mantine/core";
import { responseMeaning } from "@paybell/contract";
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { LinkedTransaction } from "../api/operations.ts";
import { shownAmount } from "../display/amount.ts";
import { Identifier } from "../display/copied.tsx";
import { Failure, isMissing } from "../display/failure.tsx";
import { Loading } from "../display/list.tsx";
import { Empty, Fields, Panel } from "../display/page.tsx";
import { State } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { PartnerName } from "../partners/partner.tsx";
import { RetryDoneReversal, ReversalActions } from "./in-doubt.tsx";
import { transactionStates } from "./transactions.tsx";

const lookEveryMs = 5_000;

/** A transaction in its chain, with the acquirer's answer, and what is still open. */
export function TransactionPage({ id }: { readonly id: string }) {
  const chain = useQuery({
    queryKey: ["chain", id],
    queryFn: async () => (await api.getChain(id)).items,
    refetchInterval: lookEveryMs,
  });
  useEffect(() => {
    document.title = "Transaction · Paybell";
  }, []);
  if (chain.isPending) return <Loading />;
  if (chain.isError && chain.data === undefined) {
    if (isMissing(chain.error))
      return (
        <Empty title="There is no such transaction">Its id is unknown, or it is older than the ledger keeps.</Empty>
      );
    return <Failure error={chain.error} onRetry={() => void chain.refetch()} />;
  }
  const one = chain.data.find((item) => item.id === id);
  if (one === undefined) return <Empty title="There is no such transaction" />;
  return (
    <Stack gap="md">
      <Stack gap={6}>
        <Group gap="sm" align="baseline">
          <Title order={1}>
            {one.command.replace("_", "-")} {shownAmount(one.amount, one.currency)}
          </Title>
          <Text className="wraps">{one.merchantTransId}</Text>
        </Group>
        <Text fz={15} className="headline" component="div">
          <State {...movedInWords(one, chain.data)} />
        </Text>
      </Stack>
      {one.reversal === "parked" && (
        <Group>
          <ReversalActions id={one.id} />
        </Group>
      )}
      {one.reversal === "done" && (
        <Group>
          <RetryDoneReversal id={one.id} />
        </Group>
      )}
      <Panel title="Chain">
        <ol className="chain plain">
          {chain.data.map((item) => (
            <li key={item.id}>
              <Link
                href={`/transactions/${item.id}`}
                className="link-card"
                aria-current={item.id === id ? "page" : undefined}
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
    </Stack>
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

/** Whether its money moved, by its own state and by those that undo it. */
function movedInWords(one: LinkedTransaction, chain: readonly LinkedTransaction[]) {
  const undone = chain.find(
    (item) => item.originalId === one.id && ["VOID", "REVERSAL"].includes(item.command) && item.state === "SUCCESS",
  );
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
  if (undone !== undefined)
    return {
      tone: "quiet",
      word: `Approved, and undone by a ${undone.command === "VOID" ? "Void" : "Reversal"} since`,
    } as const;
  const completed = chain.find((item) => item.originalId === one.id && item.command === "PREAUTH_COMPLETE");
  if (completed?.state === "SUCCESS") return { tone: "good", word: "Approved, and completed since" } as const;
  if (one.command === "PREAUTH") return { tone: "good", word: "Approved: the amount is held" } as const;
  return { tone: "good", word: "Approved by the acquirer" } as const;
}
