import { Alert, Button, Checkbox, Group, SegmentedControl, Stack, TextInput } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { api } from "../api/call.ts";
import type { NewPartner, Partner } from "../api/operations.ts";
import { Secret } from "../display/copied.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Empty, Loaded } from "../display/loaded.tsx";
import { Page, Panel } from "../display/page.tsx";
import { Time } from "../display/time.tsx";
import { useMay } from "../session/session.ts";
import { Endpoints } from "./endpoints.tsx";
import { PartnerState, usePartners } from "./partner.tsx";
import { SettingsForm } from "./settings-form.tsx";

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
            aria-label="Show"
            value={tab}
            onChange={(value) => setParams(value === "endpoints" ? { tab: "endpoints" } : {})}
            data={[
              { value: "partners", label: "Partners" },
              { value: "endpoints", label: "Failing endpoints" },
            ]}
          />
          {mayRegister && (
            <Button component={Link} href="/partners/new" leftSection={<IconPlus size={14} aria-hidden />}>
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
        w={260}
        placeholder="Name"
        aria-label="Filter by name"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <List
        of={{ ...partners, data: partners.data && { items: found } }}
        columns={columns}
        keyOf={({ id }) => id}
        to={({ id }) => `/partners/${id}`}
        empty={
          partners.data?.length === 0
            ? ["No partner yet", "Register the first one: its keys are shown once."]
            : ["No partner has this name"]
        }
      />
    </>
  );
}

/** Registers a partner, and shows its keys this once. */
export function NewPartnerPage() {
  const queries = useQueryClient();
  const [registered, setRegistered] = useState<NewPartner>();
  const isAdmin = useMay("admin");
  const defaults = useQuery({
    queryKey: ["partner-defaults"],
    queryFn: () => api.getPartnerDefaults(),
    enabled: isAdmin,
    // A form that is being filled in must not change.
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (registered !== undefined) return <NewKeys partner={registered} />;
  return (
    <Page title="Register a partner">
      {isAdmin ? (
        <Loaded of={defaults}>
          {(initial) => (
            <SettingsForm
              initial={initial}
              isKnown={false}
              submit="Register"
              call={async (input) => {
                setRegistered(await api.registerPartner(input));
                await queries.invalidateQueries({ queryKey: ["partners"] });
                return undefined;
              }}
            />
          )}
        </Loaded>
      ) : (
        <Empty title="Your role does not include this">Ask an admin to register the partner.</Empty>
      )}
    </Page>
  );
}

/** The keys of a new partner, hidden until they are looked at. */
export function NewKeys({ partner }: { readonly partner: NewPartner }) {
  const [isKept, setIsKept] = useState(false);
  const [, navigate] = useLocation();
  return (
    <Page title="The partner's keys">
      <Alert color="accent" variant="light">
        They are shown only once: hand them over securely. If one is lost, rotate it.
      </Alert>
      <Panel title="Registered">
        <Stack gap="sm">
          <Secret label="Partner id" value={partner.id} isHidden={false} />
          <Secret label="API key" value={partner.apiKey} />
          <Secret label="Encryption key" value={partner.encryptionKey} />
          <Secret label="Signing key" value={partner.signingKey} />
          <Secret label="Webhook secret" value={partner.webhookSecret} />
          <Group>
            <Checkbox
              label="I have saved the keys"
              checked={isKept}
              onChange={(event) => setIsKept(event.currentTarget.checked)}
            />
            <Button size="sm" disabled={!isKept} onClick={() => navigate(`/partners/${partner.id}`)}>
              Open the partner
            </Button>
          </Group>
        </Stack>
      </Panel>
    </Page>
  );
}
