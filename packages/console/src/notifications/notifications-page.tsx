import { Button, Group, Stack, Switch, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useSearchParams } from "wouter";
import { fieldProblems } from "../api/call.ts";
import type { ListedNotification } from "../api/operations.ts";
import { pageRows, usePages } from "../api/query.ts";
import { Empty, Failure, Loading } from "../display/loaded.tsx";
import { Page } from "../display/page.tsx";
import { Time } from "../display/time.tsx";
import { useMayManage } from "../session/session.ts";
import { Filters, SavedViews } from "./filters.tsx";
import { NotificationTable } from "./notification-table.tsx";
import { Replay } from "./replay.tsx";
import { type Search, searchOf, timeOfId, useNotificationApi } from "./search.ts";

const newEveryMs = 5_000;
const followEveryMs = 2_000;

/** Every notification, the newest first, filtered by the URL. */
export function NotificationsPage() {
  const [params] = useSearchParams();
  const [follows, setFollows] = useState(false);
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({});
  return (
    <Page
      title="Notifications"
      actions={
        <>
          <Switch label="Follow" checked={follows} onChange={(event) => setFollows(event.currentTarget.checked)} />
          <SavedViews />
        </>
      }
    >
      <Filters problems={problems} />
      <Found key={params.toString()} search={searchOf(params)} follows={follows} onProblems={setProblems} />
    </Page>
  );
}

interface Shown {
  readonly search: Search;
  /** New ones appear by themselves. */
  readonly follows: boolean;
  /** Gets what the API says of each filter. */
  onProblems(problems: Readonly<Record<string, string>>): void;
}

function Found({ search, follows, onProblems }: Shown) {
  const notificationApi = useNotificationApi();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const mayAct = useMayManage();
  const pages = usePages(
    ["notifications", search],
    (page, { signal }) => notificationApi.search({ ...search, ...page }, signal),
    true,
  );
  const { items = [], next: reach = null } = pages.data ?? {};
  const { newer, staleAt } = useNewer(search, items, pages.isSuccess, follows);
  const { refetch } = pages;
  useEffect(() => {
    if (follows && staleAt > 0) void refetch();
  }, [follows, staleAt, refetch]);
  const problems = fieldProblems(pages.error);
  useEffect(() => onProblems(problems), [problems, onProblems]);
  if (pages.isPending) return <Loading />;
  if (pages.isError && Object.keys(problems).length > 0) return <Empty title="Correct the filters that are marked" />;
  if (pages.isError && items.length === 0) return <Failure error={pages.error} onRetry={() => void pages.refetch()} />;
  return (
    <Stack gap="xs">
      {selected.size > 0 && (
        <Replay
          key={[...selected].join()}
          title={`${selected.size} selected`}
          what="selected"
          filter={{ ids: [...selected] }}
        />
      )}
      {newer > 0 && !follows && (
        <Group justify="center">
          <Button size="compact-sm" variant="light" onClick={() => void pages.refetch()}>
            {newer === pageRows ? `${newer} or more new` : `${newer} new`}
          </Button>
        </Group>
      )}
      {items.length === 0 ? (
        <NothingFound search={search} reach={reach} />
      ) : (
        <NotificationTable items={items} {...(mayAct && { selection: { selected, onChange: setSelected } })} />
      )}
      {reach !== null && (
        <Group justify="center" gap="sm">
          <Button variant="default" loading={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
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

/**
 * The number of newer ones, which wait behind a button so that the list does not jump; and when the newest were last
 * not as shown, 0 if they are: one may have left the filter's state, or come to be in it long after it was made.
 */
function useNewer(search: Search, items: readonly ListedNotification[], isReady: boolean, follows: boolean) {
  const notificationApi = useNotificationApi();
  const newest = items[0]?.id;
  const { data, dataUpdatedAt } = useQuery({
    queryKey: ["notifications-newer", search, newest],
    queryFn: ({ signal }) => notificationApi.search({ ...search, limit: pageRows }, signal),
    enabled: isReady && search.q === undefined && search.to === undefined,
    refetchInterval: follows ? followEveryMs : newEveryMs,
    staleTime: newEveryMs,
    initialData: { items: [...items].slice(0, pageRows), next: null },
    initialDataUpdatedAt: Date.now(),
  });
  const newer = data.items.filter(({ id }) => newest === undefined || id > newest).length;
  const shown = items.slice(0, pageRows).filter(({ id }) => data.next === null || id >= data.next);
  return { newer, staleAt: statesOf(data.items) === statesOf(shown) ? 0 : dataUpdatedAt };
}

function statesOf(items: readonly ListedNotification[]): string {
  return items.map(({ id, state }) => `${id} ${state}`).join();
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
