import { Button, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { api } from "../api/call.ts";
import type { Backlog, Self } from "../api/operations.ts";
import { Failure, Loaded } from "../display/loaded.tsx";
import { Fields, Figure, Page, PageTabs, Panel } from "../display/page.tsx";
import { duration, shownTime, useNow } from "../display/time.tsx";
import { Parked } from "../notifications/parked-page.tsx";
import { Replay } from "../notifications/replay.tsx";
import { Statistics } from "../overview/figures.tsx";
import { OwnTrouble } from "../overview/trouble.tsx";
import { useMayManage } from "../session/session.ts";
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

const refreshMs = 3_000;
/** The API counts what is left up to here. */
const leftMax = 1_000;

/** The notifications that a partner has not received, how far it has pulled, and sending its parked ones again. */
export function CatchUp() {
  const mayManage = useMayManage();
  const found = useQuery({ queryKey: ["backlog"], queryFn: () => api.getBacklog(), refetchInterval: refreshMs });
  return (
    <Loaded of={found}>
      {(backlog) => (
        <Stack gap="md">
          <Figures backlog={backlog} />
          <PullWords pull={backlog.pull} />
          {mayManage ? (
            <Replay
              title="Send what waits now"
              what="pending"
              isNothing={backlog.pending === 0}
              filter={{ state: "pending" }}
            />
          ) : (
            <Text c="dimmed">To send them, sign in with an API key that has the scope manage.</Text>
          )}
          <Title order={2}>Parked</Title>
          <Parked />
        </Stack>
      )}
    </Loaded>
  );
}

function Figures({ backlog: { pending, oldestPendingAt, parked, pull } }: { readonly backlog: Backlog }) {
  const now = useNow();
  const oldest = oldestPendingAt === null ? undefined : `oldest ${duration(now - Date.parse(oldestPendingAt))}`;
  return (
    <div className="figures">
      <Figure
        label="Pending"
        value={pending.toLocaleString("en")}
        note={oldest}
        tone={pending > 0 ? "wait" : undefined}
        to="/notifications?state=pending"
      />
      <Figure
        label="Parked"
        value={parked.toLocaleString("en")}
        note="no longer sent"
        tone={parked > 0 ? "bad" : undefined}
        to="/notifications?state=parked"
      />
      <Figure
        label="Left to pull"
        value={
          pull?.left == null
            ? "–"
            : pull.left >= leftMax
              ? `${leftMax.toLocaleString("en")} or more`
              : String(pull.left)
        }
        note={pull === null ? "never pulled" : `last pulled ${shownTime(Date.parse(pull.at), now)}`}
        tone={(pull?.left ?? 0) > 0 || pull?.problem != null ? "wait" : undefined}
      />
      <Figure
        label="Pulled up to"
        value={pull?.upTo == null ? "–" : shownTime(Date.parse(pull.upTo), now)}
        note={pull?.upTo == null ? undefined : "you have everything created earlier"}
      />
    </div>
  );
}

const problems: Readonly<Record<string, string>> = {
  cursor_expired: "History after your cursor is no longer complete: start without one, then reconcile the gap.",
  cursor_from_another_history: "The service was restored from a backup: start without a cursor, then reconcile.",
  invalid_cursor: "Your cursor is not one of this service: start without one.",
};

function PullWords({ pull }: { readonly pull: Backlog["pull"] }) {
  const text =
    pull === null
      ? "You have not pulled yet. The library's function catchUp fetches everything since a cursor, delivered or not."
      : pull.problem !== null
        ? (problems[pull.problem] ?? pull.problem)
        : pull.left === 0
          ? "Your catch-up has reached the end."
          : "Your catch-up has not reached the end: let it run, or send what is parked again.";
  return <Text role="status">{text}</Text>;
}
