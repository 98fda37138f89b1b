import { Group, Select, Tabs } from "@mantine/core";
import { useSearchParams } from "wouter";
import { AcquirerSelect } from "../acquirers/acquirer-select.tsx";
import { Page } from "../display/page.tsx";
import { PartnerSelect } from "../partners/partner-select.tsx";
import { Batches } from "./batches.tsx";
import { InDoubt } from "./in-doubt.tsx";
import { Merchants } from "./merchants.tsx";
import { Settlements } from "./settlements.tsx";
import { Transactions, transactionStates } from "./transactions.tsx";

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
