import { Button, Stack } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { api } from "../api/call.ts";
import type { Self } from "../api/operations.ts";
import { Failure, Loaded } from "../display/loaded.tsx";
import { Fields, Page, PageTabs, Panel } from "../display/page.tsx";
import { Statistics } from "../overview/figures.tsx";
import { OwnTrouble } from "../overview/trouble.tsx";
import { useMayManage } from "../session/session.ts";
import { CatchUp } from "./catch-up.tsx";
import { Certify } from "./certify.tsx";
import { Certificates, ChangeUrl, Endpoints } from "./endpoints.tsx";
import { Keys } from "./keys.tsx";
import { UrlsByCommandList } from "./settings-form.tsx";
import { Statements } from "./statements.tsx";

/** A partner's own page. */
export function MyPartnerPage() {
  const self = useQuery({ queryKey: ["self"], queryFn: () => api.getSelf() });
  return <Loaded of={self}>{(partner) => <Shown self={partner} />}</Loaded>;
}

function Shown({ self }: { readonly self: Self }) {
  const [, navigate] = useLocation();
  const mayManage = useMayManage();
  const test = useMutation({
    mutationFn: () => api.sendTestNotification(),
    onSuccess: ({ id }) => navigate(`/notifications/${id}`),
  });
  const { settings } = self;
  return (
    <Page
      title={settings.name}
      actions={
        mayManage && (
          <Button variant="default" loading={test.isPending} onClick={() => test.mutate()}>
            Send a test IPN
          </Button>
        )
      }
    >
      {test.isError && <Failure error={test.error} />}
      <OwnTrouble />
      <PageTabs
        tabs={{
          Statistics: () => (
            <Stack gap="md">
              <Statistics id="" />
              <Endpoints />
              <Certificates />
            </Stack>
          ),
          Statements: () => <Statements timeZone={settings.timeZone} />,
          "Catch-up": () => <CatchUp />,
          Settings: () => <Settings self={self} />,
          Keys: () => <Keys partner={self} />,
          Endpoints: () => (
            <Stack gap="md">
              {settings.callBackUrlChange === "partner" && mayManage && <ChangeUrl />}
              <Certificates />
              <Endpoints />
            </Stack>
          ),
          ...(mayManage && { Certify: () => <Certify registered={settings.callBackUrl} /> }),
        }}
      />
    </Page>
  );
}

function Settings({ self: { settings, egressAddresses, proofPublicKey } }: { readonly self: Self }) {
  return (
    <Panel title="Settings">
      <Fields
        of={{
          "Callback URL": settings.callBackUrl ?? "none: each command brings its own",
          "URLs by command": <UrlsByCommandList urls={settings.callBackUrlByCommand} />,
          "Callback addresses": settings.callbackAddresses.join(", "),
          "Calling addresses": settings.callingAddresses.join(", "),
          "Our callbacks come from": egressAddresses.join(", ") || "not stated",
          Encryption: `${settings.cipher}, ${settings.encoding}`,
          Signature: settings.signing.mode === "fields" ? "over the agreed fields" : "over the whole IPN",
          Order: settings.ordering === "chain" ? "IPNs of a chain are sent one after the other" : "none",
          "Retries after": `${settings.retry.join(", ")} seconds`,
          "Messages in trouble go to":
            [...settings.contactMails, settings.contactUrl].filter(Boolean).join(", ") ||
            "nobody: ask the operator to add addresses, or a webhook",
          "Time zone": settings.timeZone,
          "Key for proofs of delivery": <span className="mono">{proofPublicKey}</span>,
        }}
      />
    </Panel>
  );
}
