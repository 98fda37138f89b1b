import { Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import { shownMinor } from "../display/amount.ts";
import { Empty } from "../display/empty.tsx";
import { Failure, isMissing } from "../display/failure.tsx";
import { Fields } from "../display/fields.tsx";
import { Identifier } from "../display/identifier.tsx";
import { Panel } from "../display/panel.tsx";
import { Loading } from "../display/rows.tsx";
import { State } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { PartnerName } from "../partners/partner-name.tsx";
import { outcomeOf } from "./settlement-page.tsx";
import { TotalsTable } from "./totals.tsx";
import { Transactions } from "./transactions.tsx";

/** One settled batch: the totals of both sides, and its transactions. */
export function BatchPage({ id }: { readonly id: string }) {
  const found = useQuery({
    queryKey: ["batch", id],
    queryFn: async () => {
      const batch = await api.inspectBatch(id);
      return { batch, settlement: await api.inspectSettlement(batch.settlementId).catch(() => undefined) };
    },
  });
  useEffect(() => {
    document.title = "Batch · Paybell";
  }, []);
  if (found.isPending) return <Loading />;
  if (found.isError) {
    if (isMissing(found.error))
      return <Empty title="There is no such batch">Only settled batches have a page, as long as they are kept.</Empty>;
    return <Failure error={found.error} onRetry={() => void found.refetch()} />;
  }
  const { batch, settlement } = found.data;
  return (
    <Stack gap="md">
      <Stack gap={6}>
        <Group gap="sm" align="baseline">
          <Title order={1}>
            Batch {batch.batchNo} of {batch.tid}
          </Title>
          <Text>{shownMinor(batch.saleTotalMinor, batch.currency)}</Text>
        </Group>
        <Text fz={15} className="headline" component="div">
          <State
            {...(settlement === undefined
              ? ({ tone: "quiet", word: "Its settlement is no longer kept" } as const)
              : outcomeOf(settlement))}
          />
        </Text>
      </Stack>
      {settlement !== undefined && (
        <Panel title="Totals of both sides" flush>
          <TotalsTable settlement={settlement} />
        </Panel>
      )}
      <Panel title="Batch">
        <Fields
          of={{
            Partner: batch.partnerId !== null && <PartnerName id={batch.partnerId} />,
            Merchant: <span className="mono">{batch.mid}</span>,
            Closed: <Time at={batch.closedAt} exact />,
            Settlement: <Link href={`/settlements/${batch.settlementId}`}>Open it</Link>,
            "Its date at the acquirer": settlement?.settlementDate,
            Id: <Identifier id={batch.id} whole />,
          }}
        />
      </Panel>
      <Panel title="Its transactions" flush>
        <div className="inside">
          <Transactions partner={batch.partnerId ?? undefined} state={undefined} batch={id} />
        </div>
      </Panel>
    </Stack>
  );
}
