import { Group, Select, TextInput } from "@mantine/core";
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { api } from "../api/call.ts";
import { Empty, Page } from "../display/page.tsx";
import { PartnerSelect } from "../partners/partner.tsx";
import { useMay } from "../session/session.ts";
import { NotificationList } from "./notification-table.tsx";
import { Replay, type ReplayFilter } from "./replay.tsx";
import { reasons } from "./words.ts";

const rows = 50;

/** Parked notifications, and sending all of them again. */
export function ParkedPage() {
  const mayAct = useMay("operator");
  const queries = useQueryClient();
  const [params, setParams] = useSearchParams();
  const set = (name: string, value: string | null) =>
    setParams((before) => {
      const next = new URLSearchParams(before);
      if (value) next.set(name, value);
      else next.delete(name);
      return next;
    });
  const filter = filterOf(params);
  return (
    <Page title="Parked">
      <Group gap="xs" align="end" className="filters">
        <PartnerSelect label="Partner" value={params.get("partner")} onChange={(value) => set("partner", value)} />
        <Select
          size="xs"
          w={260}
          label="Reason"
          placeholder="Any reason"
          clearable
          searchable
          data={Object.entries(reasons).map(([value, label]) => ({ value, label }))}
          value={params.get("reason")}
          onChange={(value) => set("reason", value)}
        />
        <TextInput
          size="xs"
          type="datetime-local"
          label="Created from"
          value={params.get("since") ?? ""}
          onChange={(event) => set("since", event.currentTarget.value)}
        />
        <TextInput
          size="xs"
          type="datetime-local"
          label="Created before"
          value={params.get("until") ?? ""}
          onChange={(event) => set("until", event.currentTarget.value)}
        />
      </Group>
      {mayAct && (
        <Replay
          key={params.toString()}
          title="Send all of them again"
          redeliver={(step) => api.redeliver({ filter, ...step })}
          onSettled={() => queries.invalidateQueries({ queryKey: ["parked"] })}
        />
      )}
      <List filter={filter} />
    </Page>
  );
}

function filterOf(params: URLSearchParams): ReplayFilter {
  const text = (name: string) => params.get(name) || undefined;
  const time = (name: string) => {
    const at = Date.parse(params.get(name) ?? "");
    return Number.isNaN(at) ? undefined : new Date(at).toISOString();
  };
  const [partner, reason, from, to] = [text("partner"), text("reason"), time("since"), time("until")];
  return {
    state: "parked",
    ...(partner && { partner }),
    ...(reason && { reason }),
    ...(from && { from }),
    ...(to && { to }),
  };
}

function List({ filter }: { readonly filter: ReplayFilter }) {
  const pages = useInfiniteQuery({
    queryKey: ["parked", filter],
    queryFn: ({ pageParam, signal }) =>
      api.searchNotifications({ ...filter, state: "parked", limit: rows, after: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  const items = pages.data?.pages.flatMap((page) => page.items) ?? [];
  const isFiltered = Object.keys(filter).length > 1;
  return (
    <NotificationList
      of={pages}
      items={items}
      empty={
        isFiltered ? (
          <Empty title="Nothing that is parked matches">No parked notification has all of this.</Empty>
        ) : (
          <Empty title="Nothing is parked">
            A notification is parked when its schedule has run out; it is kept, and can be sent again.
          </Empty>
        )
      }
    />
  );
}
