import { Button, Group, Progress, Select, Stack, Text, TextInput } from "@mantine/core";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { useSearchParams } from "wouter";
import { api } from "../api/call.ts";
import { Empty } from "../display/empty.tsx";
import { Failure } from "../display/failure.tsx";
import { More } from "../display/more.tsx";
import { Page } from "../display/page.tsx";
import { Panel } from "../display/panel.tsx";
import { Loading } from "../display/rows.tsx";
import { NotificationTable } from "../notifications/notification-table.tsx";
import { reasons } from "../notifications/words.ts";
import { PartnerSelect } from "../partners/partner-select.tsx";
import { useMay } from "../session/session.ts";

const rows = 50;
/** Rows per step of a replay: small enough to stop soon. */
const stepRows = 200;

type Filter = NonNullable<Parameters<typeof api.redeliver>[0]>["filter"];

/** Parked notifications, and sending all of them again. */
export function ParkedPage() {
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
      <Group gap="xs" align="end">
        <PartnerSelect value={params.get("partner")} onChange={(value) => set("partner", value)} />
        <Select
          size="xs"
          w={260}
          aria-label="Reason"
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
          aria-label="Created from"
          value={params.get("since") ?? ""}
          onChange={(event) => set("since", event.currentTarget.value)}
        />
        <TextInput
          size="xs"
          type="datetime-local"
          aria-label="Created before"
          value={params.get("until") ?? ""}
          onChange={(event) => set("until", event.currentTarget.value)}
        />
      </Group>
      <Replay key={params.toString()} filter={filter} />
      <List filter={filter} />
    </Page>
  );
}

function filterOf(params: URLSearchParams): Filter {
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

type Run = { readonly total: number; readonly done: number; readonly state: "running" | "stopped" | "ended" };

/** Counts first; then sends again step by step, so that it can be watched and stopped. */
function Replay({ filter }: { readonly filter: Filter }) {
  const mayAct = useMay("operator");
  const queries = useQueryClient();
  const [to, setTo] = useState<"original" | "registered">("original");
  const [run, setRun] = useState<Run>();
  const stops = useRef(false);
  const count = useMutation({ mutationFn: () => api.redeliver({ filter, to, dryRun: true }) });
  const replay = useMutation({
    mutationFn: async (total: number) => {
      stops.current = false;
      let done = 0;
      setRun({ total, done, state: "running" });
      while (!stops.current && done < total) {
        const step = await api.redeliver({ filter, to, limit: Math.min(stepRows, total - done) });
        done += step.redelivered;
        setRun({ total, done, state: "running" });
        if (step.matched === 0 || step.redelivered === 0) break;
      }
      setRun({ total, done, state: stops.current ? "stopped" : "ended" });
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["parked"] }),
  });
  if (!mayAct) return null;
  const matched = count.data?.matched;
  return (
    <Panel title="Send all of them again">
      <Stack gap="sm">
        {run === undefined && (
          <Group gap="xs">
            <Select
              size="xs"
              w={220}
              aria-label="Where to"
              allowDeselect={false}
              data={[
                { value: "original", label: "To each one's own URL" },
                { value: "registered", label: "To the URL registered now" },
              ]}
              value={to}
              onChange={(value) => {
                setTo(value === "registered" ? "registered" : "original");
                count.reset();
              }}
            />
            <Button size="xs" variant="default" loading={count.isPending} onClick={() => count.mutate()}>
              Count them first
            </Button>
            {matched !== undefined && matched > 0 && (
              <Button size="xs" onClick={() => replay.mutate(matched)}>
                Send {matched.toLocaleString("en")} again
              </Button>
            )}
            {matched !== undefined && (
              <Text size="sm" role="status">
                {matched === 0
                  ? "None matches these filters."
                  : `${matched.toLocaleString("en")} would be pending again, with a whole schedule before each.`}
              </Text>
            )}
          </Group>
        )}
        {run !== undefined && (
          <Stack gap={6}>
            <Progress value={run.total === 0 ? 100 : (100 * run.done) / run.total} aria-label="Progress" />
            <Group gap="sm">
              <Text size="sm" role="status">
                {run.done.toLocaleString("en")} of {run.total.toLocaleString("en")} due again
                {run.state === "stopped" && ": stopped"}
                {run.state === "ended" && ": done"}
              </Text>
              {run.state === "running" && !replay.isError && (
                <Button size="compact-xs" variant="default" onClick={() => (stops.current = true)}>
                  Stop
                </Button>
              )}
              {(run.state !== "running" || replay.isError) && (
                <Button
                  size="compact-xs"
                  variant="default"
                  onClick={() => {
                    setRun(undefined);
                    count.reset();
                    replay.reset();
                  }}
                >
                  Close
                </Button>
              )}
            </Group>
          </Stack>
        )}
        {count.isError && <Failure error={count.error} />}
        {replay.isError && <Failure error={replay.error} />}
      </Stack>
    </Panel>
  );
}

function List({ filter }: { readonly filter: Filter }) {
  const { reason, ...search } = filter;
  const pages = useInfiniteQuery({
    queryKey: ["parked", filter],
    queryFn: ({ pageParam, signal }) =>
      api.searchNotifications({ ...search, state: "parked", limit: rows, after: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  if (pages.isPending) return <Loading />;
  if (pages.isError) return <Failure error={pages.error} onRetry={() => void pages.refetch()} />;
  const items = pages.data.pages
    .flatMap((page) => page.items)
    .filter((item) => reason === undefined || item.lastReason === reason);
  if (items.length === 0) {
    return (
      <Empty title="Nothing is parked">
        A notification is parked when its schedule has run out; it is kept, and can be sent again.
      </Empty>
    );
  }
  return (
    <>
      <NotificationTable items={items} />
      <More pages={pages} />
    </>
  );
}
