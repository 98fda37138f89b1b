import { Group, Select } from "@mantine/core";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { BatchRecord } from "../api/operations.ts";
import { usePages } from "../api/query.ts";
import { shownMinor } from "../display/amount.ts";
import { List, type ListColumn } from "../display/list.tsx";
import { Page, PageTabs, useFilters } from "../display/page.tsx";
import { transactionStates } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { PartnerFilter, partnerColumn } from "../partners/partner.tsx";
import { AcquirerFilter } from "./acquirer-filter.tsx";
import { InDoubt, Settlements } from "./in-doubt.tsx";
import { Merchants } from "./merchants.tsx";
import { Transactions } from "./transactions.tsx";

const states = (["SUCCESS", "ERROR", "INIT"] as const).map((value) => ({
  value,
  label: transactionStates[value].word,
}));

/** Transactions in doubt first; then the ledger. */
export function MoneyPage() {
  const { params, set } = useFilters();
  const partner = params.get("partner") ?? undefined;
  const state = states.find(({ value }) => value === params.get("state"))?.value;
  const acquirer = params.get("acquirer") ?? undefined;
  return (
    <Page title="Money">
      <PageTabs
        tabs={{
          "In doubt": () => <InDoubt />,
          Transactions: () => (
            <Transactions
              {...{ partner, state, acquirer }}
              filters={
                <>
                  <PartnerFilter />
                  <Select
                    w={140}
                    aria-label="State"
                    placeholder="Any state"
                    clearable
                    data={states}
                    value={state ?? null}
                    onChange={(value) => set({ state: value })}
                  />
                  <AcquirerFilter />
                </>
              }
            />
          ),
          Batches: () => (
            <>
              <Group mb="sm">
                <PartnerFilter />
              </Group>
              <Batches partner={partner} />
            </>
          ),
          Settlements: () => (
            <>
              <Group mb="sm">
                <PartnerFilter />
              </Group>
              <Settlements partner={partner} />
            </>
          ),
          Merchants: () => <Merchants partner={partner} />,
        }}
      />
    </Page>
  );
}

const batchColumns: readonly ListColumn<BatchRecord>[] = [
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
function Batches({ partner }: { readonly partner: string | undefined }) {
  const found = usePages(["batches", partner], (page, options) => api.searchBatches({ partner, ...page }, options));
  return (
    <List
      of={found}
      columns={batchColumns}
      keyOf={({ id }) => id}
      to={({ id }) => `/batches/${id}`}
      empty={["No batch was settled yet", "A Settlement closes a terminal's batch; it appears here then."]}
    />
  );
}
