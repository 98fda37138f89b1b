import { Alert, Button, Group, Menu, Stack, Text } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { IconChevronDown, IconDownload, IconRefresh } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { NotificationDetail } from "../api/operations.ts";
import { shownAmount } from "../display/amount.ts";
import { Identifier } from "../display/copied.tsx";
import { download } from "../display/csv.ts";
import { Failure, Loaded } from "../display/loaded.tsx";
import { Fields, Page, Panel } from "../display/page.tsx";
import { State, shownCommand } from "../display/state.tsx";
import { useNow } from "../display/time.tsx";
import { Moved } from "../money/moved.tsx";
import { PartnerName } from "../partners/partner.tsx";
import { useHasScope, useMay, useMayManage, useSession } from "../session/session.ts";
import { pageOf } from "../shell/pages.ts";
import { Content, OwnContent } from "./content.tsx";
import { useNotificationApi } from "./search.ts";
import { Schedule, Timeline } from "./timeline.tsx";
import { headlineOf, resultOf } from "./words.ts";

const refreshMs = 2_000;

/** One notification: did they get it, if not why, and what can be done. */
export function NotificationPage({ id }: { readonly id: string }) {
  const notificationApi = useNotificationApi();
  const found = useQuery({
    queryKey: ["notification", id],
    queryFn: () => notificationApi.find(id),
    refetchInterval: (query) => (query.state.data?.state === "pending" ? refreshMs : false),
  });
  return (
    <Loaded
      of={found}
      missing={["There is no such notification", "Its id is unknown, or it is older than the history keeps."]}
    >
      {(one) => <Shown one={one} />}
    </Loaded>
  );
}

function Shown({ one }: { readonly one: NotificationDetail }) {
  const { id, subject, waiting } = one;
  const mayRead = useMay("operator");
  const mayOpen = useHasScope("pull");
  const isOperator = useSession().session.kind === "operator";
  const now = useNow();
  return (
    <Page
      title={`${shownCommand(one.command)} ${shownAmount(subject.amount, subject.currency)}`}
      about={[subject.merchantTransId, isOperator ? one.partnerName : subject.merchantName].filter(Boolean).join(" · ")}
      headline={<State {...headlineOf(one, now)} />}
    >
      {one.state !== "accepted" && <LastAnswer of={one} />}
      {waiting?.after != null && <Before id={waiting.after} />}
      {waiting?.because === "paused" && <PausedBy partner={one.partnerId} />}
      {waiting?.target != null && (
        <Text c="dimmed" className="wraps">
          Endpoint {waiting.target}
        </Text>
      )}
      {one.transactionId !== null && one.kind === "card" && (
        <Group gap={6} className="wraps">
          <Link href={`/transactions/${one.transactionId}`}>The money</Link>
          <Moved id={one.transactionId} />
        </Group>
      )}
      <Actions id={id} isPending={one.state === "pending"} />
      <Group align="stretch" gap="md" className="two-columns">
        <Panel title="Timeline">
          <Schedule one={one} />
          <Timeline one={one} />
        </Panel>
        <Panel title="Notification">
          <About one={one} />
        </Panel>
      </Group>
      {mayRead && <Content id={id} />}
      {mayOpen && <OwnContent id={id} kind={one.kind} />}
    </Page>
  );
}

const shownAnswerLength = 300;

/** The partner's own words about why it did not take it. */
function LastAnswer({ of }: { readonly of: NotificationDetail }) {
  const answer = of.attempts.at(-1)?.answer?.trim();
  if (!answer) return null;
  return (
    <Text className="wraps">
      Its answer: <code>{answer.length > shownAnswerLength ? `${answer.slice(0, shownAnswerLength)}…` : answer}</code>
    </Text>
  );
}

/** The notification that is sent first, and why that one waits. */
function Before({ id }: { readonly id: string }) {
  const notificationApi = useNotificationApi();
  const now = useNow();
  const one = useQuery({
    queryKey: ["notification", id],
    queryFn: () => notificationApi.find(id),
    refetchInterval: refreshMs,
  }).data;
  if (one === undefined) return null;
  return (
    <Group gap={6} className="wraps">
      <Link href={`/notifications/${id}`}>
        The {shownCommand(one.command)} {one.subject.merchantTransId} before it
      </Link>
      <State {...headlineOf(one, now)} />
    </Group>
  );
}

/** Who paused the partner: an admin may read that in the audit. */
function PausedBy({ partner }: { readonly partner: string }) {
  const isEnabled = useMay("admin");
  const search = { action: "pausePartner", subject: partner, limit: 1 };
  const found = useQuery({ queryKey: ["audit", search], queryFn: () => api.searchAudit(search), enabled: isEnabled });
  const [entry] = found.data?.items ?? [];
  return entry === undefined ? null : <Text>Paused by {entry.actor}</Text>;
}

function About({ one }: { readonly one: NotificationDetail }) {
  const isOperator = useSession().session.kind === "operator";
  const { subject, transactionId: transaction, command } = one;
  /** The list of what shares it, for a value that several notifications have. */
  const others = (name: "tid" | "mid" | "lastFour", value: string | null, shown = value) =>
    value && (
      <Link href={`/notifications?${new URLSearchParams({ [name]: value })}`} className="mono">
        {shown}
      </Link>
    );
  return (
    <Fields
      of={{
        Notification: <Identifier id={one.id} />,
        Transaction: transaction !== null && (
          <Identifier
            id={transaction}
            to={isOperator ? pageOf({ id: transaction, command }) : `/transactions/${transaction}`}
          />
        ),
        reqId: subject.reqId && <Identifier id={subject.reqId} />,
        refId: subject.refId && <Identifier id={subject.refId} whole />,
        "Approve code": subject.approveCode && <span className="mono">{subject.approveCode}</span>,
        Result: resultOf(one)?.meaning,
        Card: others("lastFour", subject.lastFour, `•••• ${subject.lastFour}`),
        Terminal: others("tid", subject.tid),
        Merchant: others("mid", subject.mid),
        Partner: isOperator && <PartnerName id={one.partnerId} />,
        "Goes to": one.callBackUrl ?? "The registered callback URL",
      }}
    />
  );
}

function Actions({ id, isPending }: { readonly id: string; readonly isPending: boolean }) {
  const notificationApi = useNotificationApi();
  const queries = useQueryClient();
  const mayProve = useMay("operator");
  const mayAct = useMayManage();
  const redeliver = useMutation({
    mutationFn: (to: "original" | "registered") => notificationApi.redeliver(id, to),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["notification", id] }),
  });
  const prove = useMutation({
    mutationFn: () => api.proveDelivery(id),
    onSuccess: (proof) => download(`proof-${id}.json`, `${JSON.stringify(proof, null, 2)}\n`, "application/json"),
  });
  const canRedeliver = mayAct && !redeliver.isPending;
  useHotkeys([["r", ({ repeat }) => canRedeliver && !repeat && redeliver.mutate("original")]]);
  return (
    <Stack gap="xs">
      <Group gap="xs">
        {mayAct && (
          <Button.Group>
            <Button
              variant="default"
              leftSection={<IconRefresh size={14} aria-hidden />}
              loading={redeliver.isPending}
              onClick={() => redeliver.mutate("original")}
            >
              {isPending ? "Send now" : "Redeliver"}
            </Button>
            <Menu position="bottom-end">
              <Menu.Target>
                <Button variant="default" px={6} aria-label="Redeliver to another URL">
                  <IconChevronDown size={14} aria-hidden />
                </Button>
              </Menu.Target>
              <Menu.Dropdown>
                <Menu.Item onClick={() => redeliver.mutate("original")}>To its own URL</Menu.Item>
                <Menu.Item onClick={() => redeliver.mutate("registered")}>To the URL registered now</Menu.Item>
              </Menu.Dropdown>
            </Menu>
          </Button.Group>
        )}
        {mayProve && (
          <Button
            variant="default"
            loading={prove.isPending}
            onClick={() => prove.mutate()}
            leftSection={<IconDownload size={14} aria-hidden />}
          >
            Proof of delivery
          </Button>
        )}
        <Link href="/notifications" className="quiet-link">
          All notifications
        </Link>
      </Group>
      {redeliver.isError && <Failure error={redeliver.error} />}
      {prove.isError && <Failure error={prove.error} />}
      {redeliver.isSuccess && isPending && (
        <Alert color="accent" variant="light" p="xs">
          {redeliver.data.held === null ? "It is due now." : heldBy[redeliver.data.held]}
        </Alert>
      )}
    </Stack>
  );
}

const heldBy = {
  paused: "It is due, and is sent when the partner is resumed.",
  order: "It is due, and is sent after an earlier one of its chain.",
} as const;
