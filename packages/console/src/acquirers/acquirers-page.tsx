import { Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { AcquirerState, AcquirerTerminals } from "../api/operations.ts";
import { Empty } from "../display/empty.tsx";
import { Failure } from "../display/failure.tsx";
import { Fields } from "../display/fields.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Merchant } from "../display/merchant.tsx";
import { Page } from "../display/page.tsx";
import { Panel } from "../display/panel.tsx";
import { Loading } from "../display/rows.tsx";
import { State } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { partnerColumnEverywhere } from "../partners/partner-name.tsx";
import { type InDoubtCounts, useInDoubtCounts } from "./in-doubt-counts.ts";
import { ofSettings, transactionsOf, useAcquirers } from "./use-acquirers.ts";

/** Each acquirer: whether it can be asked, and what it has left in doubt. */
export function AcquirersPage() {
  const found = useAcquirers();
  const inDoubt = useInDoubtCounts();
  return (
    <Page title="Acquirers">
      {found.isPending && <Loading />}
      {found.isError && found.data === undefined && (
        <Failure error={found.error} onRetry={() => void found.refetch()} />
      )}
      {found.data !== undefined && (
        <>
          <Panel title="The acquirer of the settings" actions={<ItsTransactions name={ofSettings} />}>
            <Stack gap="sm">
              <LinkState link={found.data.ofSettings.link} />
              <Fields
                of={{
                  Kind: found.data.ofSettings.kind,
                  "Last heard": found.data.ofSettings.link.heardAt !== null && heard(found.data.ofSettings.link),
                  "In doubt": <InDoubt counts={inDoubt("")} />,
                  "Its terminals": "each that names no other acquirer",
                }}
              />
            </Stack>
          </Panel>
          {found.data.items.map((one) => (
            <Registered key={one.name} one={one} inDoubt={inDoubt(one.name)} />
          ))}
          {found.data.items.length === 0 && (
            <Empty title="No acquirer is registered in addition">
              An admin registers one by <span className="mono">paybell acquirer add</span>; a terminal then names it.
            </Empty>
          )}
        </>
      )}
    </Page>
  );
}

function Registered({ one, inDoubt }: { readonly one: AcquirerState; readonly inDoubt: InDoubtCounts | undefined }) {
  const mac = one.profile["mac"] as { readonly algorithm?: string; readonly keyExchange?: object } | null | undefined;
  return (
    <Panel title={one.name} actions={<ItsTransactions name={one.name} />} flush>
      <Stack gap="sm" className="inside">
        <LinkState link={one.link} />
        <Group align="start" gap="4px 16px" className="two-columns even">
          <Fields
            of={{
              Profile: String(one.profile["name"] ?? ""),
              "Hosts, in order": one.hosts.join(", "),
              "Last heard": heard(one.link),
              "In doubt": <InDoubt counts={inDoubt} />,
            }}
          />
          <Fields
            of={{
              TLS: one.tls === "on" ? (one.hasKey ? "on, with our client certificate" : "on") : "off: a private line",
              MAC: macOf(mac, one.hasMacKey),
              Sessions: sessionsOf(one.profile),
              Registered: <Time at={one.createdAt} />,
              Changed: one.updatedAt !== one.createdAt && <Time at={one.updatedAt} />,
            }}
          />
        </Group>
      </Stack>
      <Terminals name={one.name} />
    </Panel>
  );
}

function ItsTransactions({ name }: { readonly name: string }) {
  return <Link href={transactionsOf(name)}>Its transactions</Link>;
}

function LinkState({ link: { ok, detail } }: { readonly link: AcquirerState["link"] }) {
  return (
    <Text component="div" className="headline">
      <State tone={ok ? "good" : "bad"} word={`${ok ? "Can be asked" : "Cannot be asked"}: ${detail}`} />
    </Text>
  );
}

function heard({ heardAt }: AcquirerState["link"]) {
  return heardAt === null ? "not known to this instance" : <Time at={heardAt} />;
}

function InDoubt({ counts }: { readonly counts: InDoubtCounts | undefined }) {
  if (counts === undefined) return <>…</>;
  const { parked, pending, settlements, isCut } = counts;
  if (parked + pending + settlements === 0)
    return <State tone="good" word={isCut ? "none of the newest" : "nothing"} />;
  return (
    <Link href="/money">
      <State
        tone={parked > 0 ? "bad" : "wait"}
        word={[
          parked > 0 && `${counted(parked, "Reversal")} given up`,
          pending > 0 && `${counted(pending, "Reversal")} in progress`,
          settlements > 0 && `${counted(settlements, "settlement")} in progress`,
        ]
          .filter(Boolean)
          .join(", ")}
      />
      {isCut && " or more"}
    </Link>
  );
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function macOf(
  mac: { readonly algorithm?: string; readonly keyExchange?: object } | null | undefined,
  hasKey: boolean,
) {
  if (mac == null) return "none";
  const keys = mac.keyExchange == null ? "under the registered key" : "new keys come over the link";
  return `${mac.algorithm ?? ""}, ${hasKey ? keys : "its key is missing"}`;
}

function sessionsOf({ network }: AcquirerState["profile"]): string {
  const { sessions = "each" } = (network ?? {}) as { readonly sessions?: string };
  return sessions === "one" ? "one in all: one instance connects for the others" : "one of each instance";
}

const columns: readonly ListColumn<AcquirerTerminals["items"][number]>[] = [
  {
    name: "Terminal",
    show: ({ partnerId, tid }) => (
      <Link href={`/notifications?${new URLSearchParams({ partner: partnerId, tid })}`}>{tid}</Link>
    ),
    look: "mono",
  },
  { name: "Merchant", show: (terminal) => <Merchant of={terminal} />, look: "wraps" },
  { ...partnerColumnEverywhere, look: "wraps" },
];

function Terminals({ name }: { readonly name: string }) {
  const found = useQuery({ queryKey: ["acquirer-terminals", name], queryFn: () => api.listAcquirerTerminals(name) });
  return (
    <section className="next-part" aria-label={`Terminals of ${name}`}>
      <List
        of={found}
        items={found.data?.items ?? []}
        columns={columns}
        keyOf={({ partnerId, tid }) => `${partnerId} ${tid}`}
        empty={<Empty title="No terminal names it">Its commands begin once a terminal names it.</Empty>}
      />
      {found.data?.isCut && (
        <Text c="dimmed" className="inside-note">
          These are the first {found.data.items.length}; there are more.
        </Text>
      )}
    </section>
  );
}
