import { Button, SegmentedControl, TextInput } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { Link, useSearchParams } from "wouter";
import type { Partner } from "../api/operations.ts";
import { Empty } from "../display/empty.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Page } from "../display/page.tsx";
import { Time } from "../display/time.tsx";
import { useMay } from "../session/session.ts";
import { Endpoints } from "./endpoints.tsx";
import { PartnerState } from "./partner-state.tsx";
import { usePartners } from "./use-partners.ts";

/** Every partner, and the endpoints that failed. */
export function PartnersPage() {
  const [params, setParams] = useSearchParams();
  const mayRegister = useMay("admin");
  const tab = params.get("tab") === "endpoints" ? "endpoints" : "partners";
  return (
    <Page
      title="Partners"
      actions={
        <>
          <SegmentedControl
            size="xs"
            aria-label="Show"
            value={tab}
            onChange={(value) => setParams(value === "endpoints" ? { tab: "endpoints" } : {})}
            data={[
              { value: "partners", label: "Partners" },
              { value: "endpoints", label: "Failing endpoints" },
            ]}
          />
          {mayRegister && (
            <Button size="xs" component={Link} href="/partners/new" leftSection={<IconPlus size={14} aria-hidden />}>
              Register a partner
            </Button>
          )}
        </>
      }
    >
      {tab === "endpoints" ? <Endpoints /> : <Partners />}
    </Page>
  );
}

const columns: readonly ListColumn<Partner>[] = [
  {
    name: "Partner",
    show: ({ id, settings }) => (
      <Link href={`/partners/${id}`} title={settings.name}>
        {settings.name}
      </Link>
    ),
    look: "clipped",
    sortBy: ({ settings }) => settings.name.toLowerCase(),
  },
  { name: "State", show: (one) => <PartnerState of={one} />, sortBy: ({ state }) => state },
  {
    name: "Callback URL",
    show: ({ settings: { callBackUrl } }) => <span title={callBackUrl ?? ""}>{callBackUrl ?? "–"}</span>,
    look: "long",
    from: "tablet",
  },
  {
    name: "Encryption",
    show: ({ settings }) => settings.cipher,
    from: "tablet",
    sortBy: ({ settings }) => settings.cipher,
  },
  {
    name: "Registered",
    show: ({ createdAt }) => <Time at={createdAt} />,
    look: "nowrap",
    from: "tablet",
    sortBy: ({ createdAt }) => createdAt,
  },
];

function Partners() {
  const partners = usePartners();
  const [text, setText] = useState("");
  const wanted = text.trim().toLowerCase();
  const found = (partners.data ?? []).filter(
    ({ id, settings }) => settings.name.toLowerCase().includes(wanted) || id === wanted,
  );
  return (
    <>
      <TextInput
        size="xs"
        w={260}
        placeholder="Name"
        aria-label="Filter by name"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <List
        of={partners}
        items={found}
        columns={columns}
        keyOf={({ id }) => id}
        to={({ id }) => `/partners/${id}`}
        empty={
          partners.data?.length === 0 ? (
            <Empty title="No partner yet">Register the first one: its keys are shown once.</Empty>
          ) : (
            <Empty title="No partner has this name" />
          )
        }
      />
    </>
  );
}
