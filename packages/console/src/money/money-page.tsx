import { Group, Select, Tabs } from "@mantine/core";
import { Link, useSearchParams } from "wouter";
import type { BatchRecord } from "../api/operations.ts";
import { shownMinor } from "../display/amount.ts";
import { List, type ListColumn } from "../display/list.tsx";
import { Empty, Page } from "../display/page.tsx";
import { Time } from "../display/time.tsx";
import { PartnerSelect, partnerColumn } from "../partners/partner.tsx";
import { AcquirerSelect } from "./acquirer-select.tsx";
import { InDoubt, Settlements } from "./in-doubt.tsx";
import { Merchants } from "./merchants.tsx";
import { Transactions, transactionStates, useMoney } from "./transactions.tsx";

const tabs = ["doubt", "transactions", "batches", "settlements", "merchants"] as const;
const states = (["SUCCESS", "ERROR", "INIT"] as const).map((value) => ({
  value,
  label: transactionStates[value].word,
}));

/** Transactions in doubt first; then the ledger. */
export function MoneyPage() {
  const [params, setParams] = useSearchParams();
  const tab = tabs.find((one) => one === params.get("tab")) ?? "doubt";
  const partner = params.get("partner") ?? undefined;
  const state = states.find(({ value }) => value === params.get("state"))?.value;
  const acquirer = params.get("acquirer") ?? undefined;
  const set = (name: string, value: string | null) =>
    setParams((before) => {
      const next = new URLSearchParams(before);
      if (value) next.set(name, value);
      else next.delete(name);
      return next;
    });
  const byPartner = <PartnerSelect value={partner ?? null} onChange={(value) => set("partner", value)} />;
  return (
    <Page title="Money">
      <Tabs
        value={tab}
        onChange={(value) => setParams(value === "doubt" || value === null ? {} : { tab: value })}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="doubt">In doubt</Tabs.Tab>
          <Tabs.Tab value="transactions">Transactions</Tabs.Tab>
          <Tabs.Tab value="batches">Batches</Tabs.Tab>
          <Tabs.Tab value="settlements">Settlements</Tabs.Tab>
          <Tabs.Tab value="merchants">Merchants</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="doubt">
          <InDoubt />
        </Tabs.Panel>
        <Tabs.Panel value="transactions">
          <Transactions
            partner={partner}
            state={state}
            acquirer={acquirer}
            filters={
              <>
                {byPartner}
                <Select
                  size="xs"
                  w={140}
                  aria-label="State"
                  placeholder="Any state"
                  clearable
                  data={states}
                  value={state ?? null}
                  onChange={(value) => set("state", value)}
                />
                <AcquirerSelect value={acquirer ?? null} onChange={(value) => set("acquirer", value)} />
              </>
            }
          />
        </Tabs.Panel>
        <Tabs.Panel value="batches">
          <Group mb="sm">{byPartner}</Group>
          <Batches partner={partner} />
        </Tabs.Panel>
        <Tabs.Panel value="settlements">
          <Group mb="sm">{byPartner}</Group>
          <Settlements partner={partner} />
        </Tabs.Panel>
        <Tabs.Panel value="merchants">
          <Merchants partner={partner} filters={byPartner} />
        </Tabs.Panel>
      </Tabs>
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
export function Batches({ partner }: { readonly partner: string | undefined }) {
  const { pages, items } = useMoney("batches", { partner });
  return (
    <List
      of={pages}
      items={items}
      columns={batchColumns}
      keyOf={({ id }) => id}
      to={({ id }) => `/batches/${id}`}
      empty={
        <Empty title="No batch was settled yet">A Settlement closes a terminal's batch; it appears here then.</Empty>
      }
    />
  );
}
