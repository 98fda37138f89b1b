import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { useLocation, useSearchParams } from "wouter";
import { Empty } from "../display/empty.tsx";
import { Failure } from "../display/failure.tsx";
import { Page } from "../display/page.tsx";
import { Loading } from "../display/rows.tsx";
import { Time } from "../display/time.tsx";
import { type NotificationApi, type Search, useNotificationApi } from "./notification-api.ts";
import { NotificationTable } from "./notification-table.tsx";

const rows = 50;

/** Finds a quoted id, recognised by its shape. A single hit opens by itself. */
export function SearchPage() {
  const [params] = useSearchParams();
  const [, navigate] = useLocation();
  const desk = useNotificationApi();
  const q = (params.get("q") ?? "").trim();
  const found = useQuery({
    queryKey: ["search", q],
    queryFn: ({ signal }) => lookFor(desk, q, signal),
    enabled: q !== "",
  });
  const [only, ...others] = found.data?.items ?? [];
  const opens = only !== undefined && others.length === 0 ? only.id : undefined;
  useEffect(() => {
    if (opens !== undefined) navigate(`/notifications/${opens}`, { replace: true });
  }, [opens, navigate]);
  if (q === "")
    return (
      <Page title="Search">
        <Empty title="Search for an order, an id, a refId or a card's last four digits" />
      </Page>
    );
  return (
    <Page title={`Search: ${q}`}>
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
            <Empty title="Nothing found">
              An id, a reqId and an order, or its beginning, are found however old they are. Anything else is searched
              for among the newest notifications.
            </Empty>
          )}
        </Stack>
      )}
    </Page>
  );
}

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
async function lookFor(desk: NotificationApi, q: string, signal: AbortSignal) {
  const exact = await desk.search({ q: q.slice(0, 128), limit: rows }, signal);
  if (exact.items.length > 0)
    return {
      by: "Several match: their orders begin with it, or they share this id.",
      items: exact.items,
      lookedBackTo: null,
    };
  let lookedBackTo: string | null = null;
  for (const [by, search] of guesses(q)) {
    const { items, next } = await desk.search({ ...search, limit: rows }, signal);
    if (next !== null)
      lookedBackTo = new Date(Number.parseInt(next.replaceAll("-", "").slice(0, 12), 16)).toISOString();
    if (items.length > 0) return { by, items, lookedBackTo };
  }
  return { by: "", items: [], lookedBackTo };
}
