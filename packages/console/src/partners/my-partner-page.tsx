import { Button, Stack, Tabs } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useLocation, useSearchParams } from "wouter";
import { api } from "../api/call.ts";
import { Failure } from "../display/failure.tsx";
import { Loading } from "../display/list.tsx";
import { Page, Panel } from "../display/page.tsx";
import { Statistics } from "../overview/figures.tsx";
import { OwnTrouble } from "../overview/trouble.tsx";
import { useMayManage } from "../session/session.ts";
import { CatchUp } from "./catch-up.tsx";
import { Certify } from "./certify.tsx";
import { Certificates, ChangeUrl, Endpoints } from "./endpoints.tsx";
import { Keys } from "./keys.tsx";
import { UrlsByCommandList } from "./settings-form.tsx";
import { Statements } from "./statements.tsx";

const tabs = ["statistics", "statements", "catch-up", "settings", "keys", "endpoints", "certify"] as const;

/** A partner's own page. */
export function MyPartnerPage() {
  const [params, setParams] = useSearchParams();
  const [, navigate] = useLocation();
  const mayManage = useMayManage();
  const self = useQuery({ queryKey: ["self"], queryFn: () => api.getSelf() });
  const test = useMutation({
    mutationFn: () => api.sendTestNotification(),
    onSuccess: ({ id }) => navigate(`/notifications/${id}`),
  });
  if (self.isPending) return <Loading />;
  if (self.isError) return <Failure error={self.error} onRetry={() => void self.refetch()} />;
  const { settings, egressAddresses, proofPublicKey } = self.data;
  const tab = tabs.find((one) => one === params.get("tab")) ?? "statistics";
  return (
    <Page
      title={settings.name}
      actions={
        mayManage && (
          <Button size="xs" variant="default" loading={test.isPending} onClick={() => test.mutate()}>
            Send a test IPN
          </Button>
        )
      }
    >
      {test.isError && <Failure error={test.error} />}
      <OwnTrouble />
      <Tabs
        value={tab}
        onChange={(value) => setParams(value === "statistics" || value === null ? {} : { tab: value })}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="statistics">Statistics</Tabs.Tab>
          <Tabs.Tab value="statements">Statements</Tabs.Tab>
          <Tabs.Tab value="catch-up">Catch-up</Tabs.Tab>
          <Tabs.Tab value="settings">Settings</Tabs.Tab>
          <Tabs.Tab value="keys">Keys</Tabs.Tab>
          <Tabs.Tab value="endpoints">Endpoints</Tabs.Tab>
          {mayManage && <Tabs.Tab value="certify">Certify</Tabs.Tab>}
        </Tabs.List>
        <Tabs.Panel value="statistics">
          <Statistics id="" />
        </Tabs.Panel>
        <Tabs.Panel value="statements">
          <Statements timeZone={settings.timeZone} />
        </Tabs.Panel>
        <Tabs.Panel value="catch-up">
          <CatchUp />
        </Tabs.Panel>
        <Tabs.Panel value="settings">
          <Stack>
            <Panel title="Settings">
              <dl className="fields">
                <dt>Callback URL</dt>
                <dd>{settings.callBackUrl ?? "none: each command brings its own"}</dd>
                <dt>URLs by command</dt>
                <dd>
                  <UrlsByCommandList urls={settings.callBackUrlByCommand} />
                </dd>
                <dt>Callback addresses</dt>
                <dd>{settings.callbackAddresses.join(", ")}</dd>
                <dt>Calling addresses</dt>
                <dd>{settings.callingAddresses.join(", ")}</dd>
                <dt>Our callbacks come from</dt>
                <dd>{egressAddresses.join(", ") || "not stated"}</dd>
                <dt>Encryption</dt>
                <dd>
                  {settings.cipher}, {settings.encoding}
                </dd>
                <dt>Signature</dt>
                <dd>{settings.signing.mode === "fields" ? "over the agreed fields" : "over the whole IPN"}</dd>
                <dt>Order</dt>
                <dd>{settings.ordering === "chain" ? "IPNs of a chain are sent one after the other" : "none"}</dd>
                <dt>Retries after</dt>
                <dd>{settings.retry.join(", ")} seconds</dd>
                <dt>Time zone</dt>
                <dd>{settings.timeZone}</dd>
                <dt>Key for proofs of delivery</dt>
                <dd className="mono">{proofPublicKey}</dd>
              </dl>
            </Panel>
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="keys">
          <Keys partner={self.data} />
        </Tabs.Panel>
        <Tabs.Panel value="endpoints">
          <Stack gap="md">
            {settings.callBackUrlChange === "partner" && mayManage && <ChangeUrl />}
            <Certificates />
            <Endpoints />
          </Stack>
        </Tabs.Panel>
        {mayManage && (
          <Tabs.Panel value="certify">
            <Certify registered={settings.callBackUrl} />
          </Tabs.Panel>
        )}
      </Tabs>
    </Page>
  );
}
