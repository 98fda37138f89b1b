import { Button, Group, Stack, Text } from "@mantine/core";
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import type { ListedNotification } from "../api/operations.ts";
import { Empty } from "../display/empty.tsx";
import { Failure } from "../display/failure.tsx";
import { Page } from "../display/page.tsx";
import { Loading } from "../display/rows.tsx";
import { Time } from "../display/time.tsx";
import { Filters } from "./filters.tsx";
import { type Search, useNotificationApi } from "./notification-api.ts";
import { NotificationTable } from "./notification-table.tsx";
import { searchOf } from "./search-of.ts";

const pageRows = 50;
const newEveryMs = 5_000;

/** Every notification, the newest first, filtered by the URL. */
export function NotificationsPage() {
  const [params] = useSearchParams();
  const search = searchOf(params);
  return (
    <Page title="Notifications">
      <Filters />
      <Found key={params.toString()} search={search} />
    </Page>
  );
}

function Found({ search }: { readonly search: Search }) {
  const desk = useNotificationApi();
  const pages = useInfiniteQuery({
    queryKey: ["notifications", search],
    queryFn: ({ pageParam, signal }) =>
      desk.search({ ...search, limit: pageRows, ...(pageParam !== undefined && { after: pageParam }) }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const items = pages.data?.pages.flatMap((page) => page.items) ?? [];
  const newer = useNewer(search, items, pages.isSuccess);
  if (pages.isPending) return <Loading />;
  if (pages.isError && items.length === 0) return <Failure error={pages.error} onRetry={() => void pages.refetch()} />;
  const reach = pages.data?.pages.at(-1)?.next ?? null;
  return (
    <Stack gap="xs">
      {newer > 0 && (
        <Group justify="center">
          <Button size="compact-sm" variant="light" onClick={() => void pages.refetch()}>
            {newer === pageRows ? `${newer} or more new` : `${newer} new`}
          </Button>
        </Group>
      )}
      {items.length === 0 ? <NothingFound search={search} reach={reach} /> : <NotificationTable items={items} />}
      {reach !== null && (
        <Group justify="center" gap="sm">
          <Button
            variant="default"
            size="xs"
            loading={pages.isFetchingNextPage}
            onClick={() => void pages.fetchNextPage()}
          >
            {items.length % pageRows === 0 && items.length > 0 ? "Show more" : "Look further back"}
          </Button>
          <Text c="dimmed" size="xs">
            looked back to <Time at={timeOfId(reach)} />
          </Text>
        </Group>
      )}
    </Stack>
  );
}

/** The number of newer ones, which wait behind a button so that the list does not jump. */
function useNewer(search: Search, items: readonly ListedNotification[], isReady: boolean): number {
  const desk = useNotificationApi();
  const newest = items[0]?.id;
  const { data } = useQuery({
    queryKey: ["notifications-newer", search, newest],
    queryFn: ({ signal }) => desk.search({ ...search, limit: pageRows }, signal),
    enabled: isReady && search.q === undefined && search.to === undefined,
    refetchInterval: newEveryMs,
    staleTime: newEveryMs,
    initialData: { items: [...items].slice(0, pageRows), next: null },
    initialDataUpdatedAt: Date.now(),
  });
  return data.items.filter(({ id }) => newest === undefined || id > newest).length;
}

function NothingFound({ search, reach }: { readonly search: Search; readonly reach: string | null }) {
  if (Object.values(search).every((value) => value === undefined)) {
    return (
      <Empty title="No notification yet">
        Each completed command makes one: a Sale, Void, PreAuth, PreAuth-Complete or Settlement.
      </Empty>
    );
  }
  return (
    <Empty title="Nothing matches">
      {reach === null ? "No notification that is still kept has all of this." : "Not among those searched so far."}
    </Empty>
  );
}

/** Ids begin with their time. */
function timeOfId(id: string): string {
  return new Date(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16)).toISOString();
}
