import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { api } from "../api/call.ts";
import type { Partner, Session } from "../api/operations.ts";
import { type ListColumn, Table } from "../display/list.tsx";
import { Empty, Failure, Loading } from "../display/loaded.tsx";
import { Page } from "../display/page.tsx";
import { Time } from "../display/time.tsx";
import { usePartners } from "../partners/partner.tsx";
import { useSession } from "../session/session.ts";
import { pagesOf } from "../shell/pages.ts";
import { NotificationTable } from "./notification-table.tsx";
import { type NotificationApi, type Search, timeOfId, useNotificationApi } from "./search.ts";

const rows = 50;

/** Finds a quoted id, recognised by its shape, and whatever else has this name. A single hit opens by itself. */
export function SearchPage() {
  const [params] = useSearchParams();
  const [, navigate] = useLocation();
  const { session } = useSession();
  const notificationApi = useNotificationApi();
  const partners = usePartners();
  const q = (params.get("q") ?? "").trim();
  const areNamesKnown = session.kind === "partner" || !partners.isPending;
  const pages = useQuery({
    queryKey: ["search-pages", q, partners.dataUpdatedAt],
    queryFn: () => findPages(q, session, partners.data ?? []),
    enabled: q !== "" && areNamesKnown,
  });
  const found = useQuery({
    queryKey: ["search", q],
    queryFn: ({ signal }) => lookFor(notificationApi, q, signal),
    enabled: q !== "",
  });
  const others = pages.data ?? [];
  const hits = [...(found.data?.items ?? []).map(({ id }) => `/notifications/${id}`), ...others.map(({ to }) => to)];
  const isDone = found.isSuccess && !pages.isPending;
  const opens = isDone && hits.length === 1 ? hits[0] : undefined;
  useEffect(() => {
    if (opens !== undefined) navigate(opens, { replace: true });
  }, [opens, navigate]);
  if (q === "")
    return (
      <Page title="Search">
        <Empty title="Nothing to search for">
          Type an order, an id, a refId, a card's last four digits, a partner, a terminal or a setting.
        </Empty>
      </Page>
    );
  return (
    <Page title={`Search: ${q}`}>
      {others.length > 0 && opens === undefined && (
        <Table
          items={others}
          columns={pageColumns}
          keyOf={({ kind, name, to }) => `${kind} ${name} ${to}`}
          to={({ to }) => to}
        />
      )}
      {pages.isError && <Failure error={pages.error} onRetry={() => void pages.refetch()} />}
      {found.isPending && <Loading />}
      {found.isError && <Failure error={found.error} onRetry={() => void found.refetch()} />}
      {found.data !== undefined && opens === undefined && (
        <Stack gap="xs">
          <Text c="dimmed">
            {found.data.by}
            {found.data.lookedBackTo !== null && (
              <>
                {" "}
                Searched back to <Time at={found.data.lookedBackTo} />: the filters of the list search further.
              </>
            )}
          </Text>
          {found.data.items.length > 0 ? (
            <NotificationTable items={found.data.items} />
          ) : (
            <Empty title={others.length === 0 ? "Nothing found" : "No notification found"}>
              An id, a reqId and an order, or its beginning, are found however old they are. Anything else is searched
              for among the newest notifications.
            </Empty>
          )}
        </Stack>
      )}
    </Page>
  );
}

const pageColumns: readonly ListColumn<FoundPage>[] = [
  { name: "What", show: ({ kind }) => kind, look: "nowrap" },
  { name: "Name", show: ({ name, to }) => <Link href={to}>{name}</Link>, look: "wraps" },
  { name: "About", show: ({ about }) => about, look: "prose", from: "tablet" },
];

/** Filters that a text may be a value of. */
function guesses(q: string): readonly (readonly [string, Search])[] {
  return [
    ...(/^\d{4}$/.test(q) ? ([["Card's last four digits.", { lastFour: q }]] as const) : []),
    ...(/^[0-9A-Za-z]{6}$/.test(q) ? ([["Approve code.", { approveCode: q }]] as const) : []),
    ...(/^\d{12}$/.test(q) ? ([["refId.", { refId: q }]] as const) : []),
    ["Terminal.", { tid: q }],
    ["Part of an order.", { contains: q.slice(0, 64) }],
  ];
}

/** Indexed fields first; then, among the newest, other fields. */
async function lookFor(notificationApi: NotificationApi, q: string, signal: AbortSignal) {
  const exact = await notificationApi.search({ q: q.slice(0, 128), limit: rows }, signal);
  if (exact.items.length > 0)
    return {
      by: "Several match: their orders begin with it, or they share this id.",
      items: exact.items,
      lookedBackTo: null,
    };
  let lookedBackTo = exact.next === null ? null : timeOfId(exact.next);
  for (const [by, search] of guesses(q)) {
    const { items, next } = await notificationApi.search({ ...search, limit: rows }, signal);
    if (next !== null) lookedBackTo = timeOfId(next);
    if (items.length > 0) return { by, items, lookedBackTo };
  }
  return { by: "", items: [], lookedBackTo };
}

/** Something of the console that is no notification: its page, and what tells it apart. */
interface FoundPage {
  readonly kind: "Page" | "Partner" | "Terminal" | "Operator" | "Setting";
  readonly name: string;
  readonly about: string;
  readonly to: string;
}

const eachMax = 8;

/** Finds partners, terminals, operators, settings and pages by name; for a partner's session, pages only. */
async function findPages(q: string, session: Session, partners: readonly Partner[]): Promise<readonly FoundPage[]> {
  const wanted = q.toLowerCase();
  const has = (text: string) => text.toLowerCase().includes(wanted);
  const page = (kind: FoundPage["kind"], name: string, about: string, to: string) => ({ kind, name, about, to });
  const menu = pagesOf(session)
    .filter(({ label }) => label.toLowerCase().startsWith(wanted))
    .map(({ label, to }) => page("Page", label, "", to));
  if (session.kind === "partner") return menu;
  const [terminals, operators, settings] = await Promise.all([
    api.findTerminals({ q: q.slice(0, 128) }),
    session.role === "admin" ? api.listOperators() : { items: [] },
    api.listSettings(),
  ]);
  const ofPartner = (id: string) => partners.find((one) => one.id === id)?.settings.name ?? id;
  return [
    ...menu,
    ...partners
      .filter(({ id, settings: { name } }) => has(name) || id === q)
      .slice(0, eachMax)
      .map(({ id, settings: { name, callBackUrl } }) => page("Partner", name, callBackUrl ?? "", `/partners/${id}`)),
    ...terminals.items.slice(0, eachMax).map(({ tid, mid, merchantName, partnerId }) => {
      const about = [merchantName, mid, ofPartner(partnerId)].filter(Boolean).join(" · ");
      return page("Terminal", tid, about, `/partners/${partnerId}?tab=terminals`);
    }),
    ...operators.items
      .filter(({ name }) => has(name))
      .slice(0, eachMax)
      .map(({ name, role }) => page("Operator", name, role, "/operators")),
    ...settings.items
      .filter(({ name }) => wanted.length > 3 && has(name))
      .slice(0, eachMax)
      .map(({ name, meaning }) => page("Setting", name, meaning, `/settings?${new URLSearchParams({ q: name })}`)),
  ];
}
