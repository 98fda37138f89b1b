import { Button, Group, Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useLocation } from "wouter";
import { api } from "../api/call.ts";
import type { Partner } from "../api/operations.ts";
import { Confirm } from "../display/confirm.tsx";
import { Identifier } from "../display/copied.tsx";
import { Failure, Loaded } from "../display/loaded.tsx";
import { Page, PageTabs } from "../display/page.tsx";
import { Replay } from "../notifications/replay.tsx";
import { Statistics } from "../overview/figures.tsx";
import { PartnerTrouble } from "../overview/trouble.tsx";
import { useMay } from "../session/session.ts";
import { Certify } from "./certify.tsx";
import { Certificates, Endpoints } from "./endpoints.tsx";
import { Keys } from "./keys.tsx";
import { PartnerState } from "./partner.tsx";
import { SettingsForm } from "./settings-form.tsx";
import { Terminals } from "./terminals.tsx";
import { ShowToPartner } from "./view-link.tsx";

/** One partner: is it us or them, and what is agreed with them. */
export function PartnerPage({ id }: { readonly id: string }) {
  const found = useQuery({ queryKey: ["partner", id], queryFn: () => api.getPartner(id) });
  return (
    <Loaded of={found} missing={["There is no such partner"]}>
      {(partner) => <Shown partner={partner} />}
    </Loaded>
  );
}

function Shown({ partner }: { readonly partner: Partner }) {
  const mayAct = useMay("operator");
  const { id, settings } = partner;
  return (
    <Page title={settings.name} actions={<Actions partner={partner} />}>
      <Group gap="md">
        <PartnerState of={partner} />
        <Identifier id={id} />
        <Text className="wraps" c="dimmed">
          {settings.callBackUrl ?? "no callback URL"}
          {Object.entries(settings.callBackUrlByCommand).map(([command, url]) => ` · ${command} ${url}`)}
        </Text>
        <Link href={`/notifications?partner=${id}`}>Its notifications</Link>
        <Link href={`/parked?partner=${id}`}>Its parked ones</Link>
      </Group>
      <PartnerTrouble id={id} />
      <PageTabs
        tabs={{
          Statistics: () => (
            <Stack gap="md">
              <Statistics id={id} />
              <Endpoints partner={id} />
              <Certificates partner={id} />
            </Stack>
          ),
          Settings: () => <Settings partner={partner} />,
          Terminals: () => <Terminals partner={id} />,
          Keys: () => <Keys partner={partner} />,
          Endpoints: () => (
            <Stack gap="md">
              <Certificates partner={id} />
              <Endpoints partner={id} />
              {mayAct && <SendPending id={id} />}
            </Stack>
          ),
          ...(mayAct && { Certify: () => <Certify partner={id} registered={settings.callBackUrl} /> }),
        }}
      />
    </Page>
  );
}

const refreshMs = 10_000;

function SendPending({ id }: { readonly id: string }) {
  const filter = { partner: id, state: "pending" } as const;
  const first = useQuery({
    queryKey: ["pending", id],
    queryFn: () => api.searchNotifications({ ...filter, limit: 1 }),
    refetchInterval: refreshMs,
  });
  return (
    <Replay title="Send what waits now" what="pending" isNothing={first.data?.items.length === 0} filter={filter} />
  );
}

function Settings({ partner }: { readonly partner: Partner }) {
  const queries = useQueryClient();
  const mayAct = useMay("operator");
  return (
    <SettingsForm
      initial={partner.settings}
      submit={mayAct ? "Save" : undefined}
      call={async (input) => {
        const changed = await api.changePartner(partner.id, input);
        queries.setQueryData(["partner", partner.id], changed);
        await queries.invalidateQueries({ queryKey: ["partners"] });
        return changed.settings;
      }}
    />
  );
}

function Actions({ partner }: { readonly partner: Partner }) {
  const { id, state, settings } = partner;
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const mayAct = useMay("operator");
  const change = useMutation({
    mutationFn: (action: "pause" | "resume") => (action === "pause" ? api.pausePartner(id) : api.resumePartner(id)),
    onSuccess: (changed) => {
      queries.setQueryData(["partner", id], changed);
      return queries.invalidateQueries({ queryKey: ["partners"] });
    },
  });
  const test = useMutation({
    mutationFn: () => api.sendPartnerTestNotification(id),
    onSuccess: (notification) => navigate(`/notifications/${notification.id}`),
  });
  if (!mayAct) return null;
  return (
    <>
      {(change.error ?? test.error) != null && <Failure error={change.error ?? test.error} />}
      <Button
        variant="default"
        loading={test.isPending}
        onClick={() => test.mutate()}
        disabled={(settings.callBackUrlByCommand["SALE"] ?? settings.callBackUrl) === null}
      >
        Send a test IPN
      </Button>
      <ShowToPartner partner={partner} />
      {state === "active" ? (
        <Confirm
          label="Pause deliveries"
          title={`Pause deliveries to ${settings.name}?`}
          text="Its commands continue; its notifications wait, and are sent when it is resumed."
          onConfirm={() => change.mutateAsync("pause")}
        />
      ) : (
        <Button loading={change.isPending} onClick={() => change.mutate("resume")}>
          Resume deliveries
        </Button>
      )}
    </>
  );
}
