import { Button, Group, TextInput } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { api } from "../api/call.ts";
import type { MerchantTotals } from "../api/operations.ts";
import { shownMinor } from "../display/amount.ts";
import { csvOf, download } from "../display/csv.ts";
import { List, type ListColumn } from "../display/list.tsx";
import { useFilters } from "../display/page.tsx";
import { PartnerFilter, partnerColumn, usePartners } from "../partners/partner.tsx";

const csvColumns = [
  "day",
  "partnerId",
  "partner",
  "mid",
  "merchantName",
  "currency",
  "saleQuantity",
  "saleTotal",
  "voidQuantity",
  "voidTotal",
  "refundQuantity",
  "refundTotal",
  "reversedQuantity",
  "declinedQuantity",
] as const;

const columns: readonly ListColumn<MerchantTotals>[] = [
  { name: "Merchant", show: (merchant) => <Merchant of={merchant} />, look: "wraps" },
  partnerColumn,
  { name: "Sales", show: ({ saleQuantity }) => saleQuantity, look: "number" },
  { name: "Their total", show: ({ saleTotalMinor, currency }) => shownMinor(saleTotalMinor, currency), look: "number" },
  { name: "Voids", show: ({ voidQuantity }) => voidQuantity, look: "number" },
  { name: "Refunds", show: ({ refundQuantity }) => refundQuantity, look: "number", from: "tablet" },
  { name: "Reversed", show: ({ reversedQuantity }) => reversedQuantity, look: "number", from: "tablet" },
  { name: "Declined", show: ({ declinedQuantity }) => declinedQuantity, look: "number", from: "tablet" },
];

/** Totals of each merchant in a day of the viewer's time zone, also as CSV. */
export function Merchants({ partner }: { readonly partner: string | undefined }) {
  const { params, set } = useFilters();
  const asked = params.get("day") ?? "";
  const day = isDay(asked) ? asked : dayOf(new Date());
  const partners = usePartners().data ?? [];
  const found = useQuery({ queryKey: ["merchants", partner, day], queryFn: () => totalsOf(day, partner) });
  const items = found.data?.items ?? [];
  const nameOf = (id: string) => partners.find((one) => one.id === id)?.settings.name ?? "";
  const rows = items.map((one) => ({
    ...one,
    day,
    partner: nameOf(one.partnerId),
    saleTotal: plain(one.saleTotalMinor, one.currency),
    voidTotal: plain(one.voidTotalMinor, one.currency),
    refundTotal: plain(one.refundTotalMinor, one.currency),
  }));
  return (
    <>
      <Group gap="xs" mb="sm">
        <PartnerFilter />
        <TextInput
          type="date"
          aria-label="Day"
          value={day}
          max={dayOf(new Date())}
          onChange={({ currentTarget: { value } }) => set({ day: isDay(value) ? value : null })}
        />
        <Button
          variant="default"
          disabled={items.length === 0}
          leftSection={<IconDownload size={14} aria-hidden />}
          onClick={() => download(`merchants-${day}.csv`, csvOf(csvColumns, rows), "text/csv")}
        >
          Save as CSV
        </Button>
      </Group>
      <List
        of={found}
        columns={columns}
        keyOf={({ partnerId, mid, currency }) => `${partnerId} ${mid} ${currency}`}
        empty={["No merchant sold anything that day", "Each Sale, Void and Refund of the day is counted here."]}
      />
    </>
  );
}

function totalsOf(day: string, partner: string | undefined) {
  const from = new Date(`${day}T00:00`);
  const to = new Date(from);
  to.setDate(to.getDate() + 1);
  return api.getMerchantTotals({ from: from.toISOString(), to: to.toISOString(), partner });
}

function isDay(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(`${text}T00:00`));
}

function dayOf(at: Date): string {
  const parts = [at.getFullYear(), at.getMonth() + 1, at.getDate()];
  return parts.map((part) => String(part).padStart(2, "0")).join("-");
}

/** As a spreadsheet reads it: without a currency, and without marks between thousands. */
function plain(minor: string, currency: string): string {
  return shownMinor(minor, currency).replace(currency, "").replaceAll(",", "").trim();
}

/** By name, with the id that tells apart those of the same name. */
export function Merchant({ of: { merchantName, mid } }: { readonly of: { merchantName: string; mid: string } }) {
  return (
    <>
      {merchantName} <span className="mono">{mid}</span>
    </>
  );
}
