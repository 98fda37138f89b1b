import { Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { AcquirerState, AcquirerTerminals } from "../api/operations.ts";
import { List, type ListColumn } from "../display/list.tsx";
import { Empty, Loaded } from "../display/loaded.tsx";
import { Fields, Page, Panel } from "../display/page.tsx";
import { State } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { partnerColumnEverywhere } from "../partners/partner.tsx";
import { ofSettings, transactionsOf, useAcquirers } from "./acquirer-filter.tsx";
import { Merchant } from "./merchants.tsx";

/** Each acquirer: whether it can be asked, and what it has left in doubt. */
export function AcquirersPage() {
  const found = useAcquirers();
  const inDoubt = useInDoubtCounts();
  return (
    <Page title="Acquirers">
      <Loaded of={found}>
        {(data) => (
          <>
            <Panel title="The acquirer of the settings" actions={<ItsTransactions name={ofSettings} />}>
              <Stack gap="sm">
                <LinkState link={data.ofSettings.link} />
                <Fields
                  of={{
                    Kind: data.ofSettings.kind,
                    "Last message": data.ofSettings.link.heardAt !== null && lastMessage(data.ofSettings.link),
                    "In doubt": <InDoubt counts={inDoubt("")} />,
                    "Its terminals": "each that names no other acquirer",
                  }}
                />
              </Stack>
            </Panel>
            {data.items.map((one) => (
              <Registered key={one.name} one={one} inDoubt={inDoubt(one.name)} />
            ))}
            {data.items.length === 0 && (
              <Empty title="No acquirer is registered in addition">
                An admin registers one by <span className="mono">paybell acquirer add</span>; a terminal then names it.
              </Empty>
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Registered({ one, inDoubt }: { readonly one: AcquirerState; readonly inDoubt: InDoubtCounts | undefined }) {
  const mac = one.profile["mac"] as Mac;
  return (
    <Panel title={one.name} actions={<ItsTransactions name={one.name} />} flush>
      <Stack gap="sm" className="inside">
        <LinkState link={one.link} />
        <Group align="start" gap="4px 16px" className="two-columns even">
          <Fields
            of={{
              Profile: String(one.profile["name"] ?? ""),
              "Hosts, in order": one.hosts.join(", "),
              "Last message": lastMessage(one.link),
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

function lastMessage({ heardAt }: AcquirerState["link"]) {
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

type Mac = { readonly algorithm?: string; readonly keyExchange?: object } | null | undefined;

function macOf(mac: Mac, hasKey: boolean) {
  if (mac == null) return "none";
  const keys = mac.keyExchange == null ? "under the registered key" : "new keys come over the link";
  return `${mac.algorithm ?? ""}, ${hasKey ? keys : "its key is missing"}`;
}

function sessionsOf({ network }: AcquirerState["profile"]): string {
  const { sessions = "each" } = (network ?? {}) as { readonly sessions?: string };
  return sessions === "one" ? "one in all: one instance connects for the others" : "one of each instance";
}

const terminalColumns: readonly ListColumn<AcquirerTerminals["items"][number]>[] = [
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
        columns={terminalColumns}
        keyOf={({ partnerId, tid }) => `${partnerId} ${tid}`}
        empty={["No terminal names it", "Its commands begin once a terminal names it."]}
      />
      {found.data?.isCut && (
        <Text c="dimmed" className="inside-note">
          These are the first {found.data.items.length}; there are more.
        </Text>
      )}
    </section>
  );
}

/** Reversals and settlements that an acquirer has left open. */
interface InDoubtCounts {
  readonly parked: number;
  readonly pending: number;
  readonly settlements: number;
  /** Only the newest of all acquirers were countedMax. */
  readonly isCut: boolean;
}

const countedMax = 500;
const refreshMs = 5_000;

/** Counts of each acquirer, by its name; undefined until they are known. */
function useInDoubtCounts(): (acquirer: string) => InDoubtCounts | undefined {
  const { data } = useQuery({ queryKey: ["in-doubt"], queryFn: read, refetchInterval: refreshMs });
  return (acquirer) => {
    if (data === undefined) return undefined;
    const [parked = 0, pending = 0, settlements = 0] = data.map(
      ({ items }) => items.filter((item) => item.acquirer === acquirer).length,
    );
    return { parked, pending, settlements, isCut: data.some(({ next }) => next !== null) };
  };
}

function read() {
  return Promise.all([
    api.searchReversals({ state: "PARKED", limit: countedMax }),
    api.searchReversals({ state: "PENDING", limit: countedMax }),
    api.searchSettlements({ limit: countedMax }),
  ]);
}
