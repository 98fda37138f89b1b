import { Alert, Button, Group, Stack, Tabs, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useLocation, useSearchParams } from "wouter";
import { api, CallError } from "../api/call.ts";
import type { Partner } from "../api/operations.ts";
import { Confirm } from "../display/confirm.tsx";
import { Identifier } from "../display/copied.tsx";
import { Failure } from "../display/failure.tsx";
import { Loading } from "../display/list.tsx";
import { Empty, Page } from "../display/page.tsx";
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

const tabs = ["statistics", "settings", "terminals", "keys", "endpoints", "certify"] as const;

/** One partner: is it us or them, and what is agreed with them. */
export function PartnerPage({ id }: { readonly id: string }) {
  const [params, setParams] = useSearchParams();
  const mayAct = useMay("operator");
  const queries = useQueryClient();
  const partner = useQuery({ queryKey: ["partner", id], queryFn: () => api.getPartner(id) });
  if (partner.isPending) return <Loading />;
  if (partner.isError) {
    if (partner.error instanceof CallError && partner.error.status === 404)
      return <Empty title="There is no such partner" />;
    return <Failure error={partner.error} onRetry={() => void partner.refetch()} />;
  }
  const { settings } = partner.data;
  const tab = tabs.find((one) => one === params.get("tab")) ?? "statistics";
  return (
    <Page title={settings.name} actions={<Actions partner={partner.data} />}>
      <Group gap="md">
        <PartnerState of={partner.data} />
        <Identifier id={id} />
        <Text className="wraps" c="dimmed">
          {settings.callBackUrl ?? "no callback URL"}
          {Object.entries(settings.callBackUrlByCommand).map(([command, url]) => ` · ${command} ${url}`)}
        </Text>
        <Link href={`/notifications?partner=${id}`}>Its notifications</Link>
      </Group>
      <PartnerTrouble id={id} />
      <Tabs
        value={tab}
        onChange={(value) => setParams(value === "statistics" || value === null ? {} : { tab: value })}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="statistics">Statistics</Tabs.Tab>
          <Tabs.Tab value="settings">Settings</Tabs.Tab>
          <Tabs.Tab value="terminals">Terminals</Tabs.Tab>
          <Tabs.Tab value="keys">Keys</Tabs.Tab>
          <Tabs.Tab value="endpoints">Endpoints</Tabs.Tab>
          {mayAct && <Tabs.Tab value="certify">Certify</Tabs.Tab>}
        </Tabs.List>
        <Tabs.Panel value="statistics">
          <Statistics id={id} />
        </Tabs.Panel>
        <Tabs.Panel value="settings">
          <Settings partner={partner.data} />
        </Tabs.Panel>
        <Tabs.Panel value="terminals">
          <Terminals partner={id} />
        </Tabs.Panel>
        <Tabs.Panel value="keys">
          <Keys partner={partner.data} />
        </Tabs.Panel>
        <Tabs.Panel value="endpoints">
          <Stack gap="md">
            <Certificates partner={id} />
            <Endpoints partner={id} />
            {mayAct && (
              <Replay
                title="Send what waits now"
                what="pending"
                redeliver={(step) => api.redeliver({ filter: { partner: id, state: "pending" }, ...step })}
                onSettled={() => queries.invalidateQueries({ queryKey: ["overview"] })}
              />
            )}
          </Stack>
        </Tabs.Panel>
        {mayAct && (
          <Tabs.Panel value="certify">
            <Certify partner={id} registered={settings.callBackUrl} />
          </Tabs.Panel>
        )}
      </Tabs>
    </Page>
  );
}

function Settings({ partner }: { readonly partner: Partner }) {
  const queries = useQueryClient();
  const mayAct = useMay("operator");
  const change = useMutation({
    mutationFn: (input: Parameters<typeof api.registerPartner>[0]) => api.changePartner(partner.id, input),
    onSuccess: (changed) => {
      queries.setQueryData(["partner", partner.id], changed);
      return queries.invalidateQueries({ queryKey: ["partners"] });
    },
  });
  return (
    <>
      {change.isSuccess && (
        <Alert color="green" variant="light" mb="md" role="status">
          Changed. It holds for what is queued, too.
        </Alert>
      )}
      <SettingsForm
        initial={partner.settings}
        submit="Save"
        isPending={change.isPending}
        error={change.error}
        onSubmit={(input, saved) => change.mutate(input, { onSuccess: ({ settings }) => saved(settings) })}
        isReadOnly={!mayAct}
      />
    </>
  );
}

function Actions({ partner }: { readonly partner: Partner }) {
  const { id, state, settings } = partner;
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const mayAct = useMay("operator");
  const turn = useMutation({
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
      {(turn.error ?? test.error) != null && <Failure error={turn.error ?? test.error} />}
      <Button
        size="xs"
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
          onConfirm={() => turn.mutateAsync("pause")}
        />
      ) : (
        <Button size="xs" loading={turn.isPending} onClick={() => turn.mutate("resume")}>
          Resume deliveries
        </Button>
      )}
    </>
  );
}
