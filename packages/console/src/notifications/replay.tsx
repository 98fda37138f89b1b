import { Button, Group, Progress, Select, Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import type { api } from "../api/call.ts";
import type { Redeliveries } from "../api/operations.ts";
import { Failure } from "../display/loaded.tsx";
import { Page, Panel } from "../display/page.tsx";
import { shownCommand } from "../display/state.tsx";
import { ComingTime, clockTime, useNow } from "../display/time.tsx";
import { useNotificationApi } from "./search.ts";

/** Rows per step of a replay: small enough to stop soon. */
const stepRows = 200;

type Selection = Awaited<ReturnType<typeof api.redeliver>>["selection"];
type Run = {
  readonly id: string | null;
  readonly total: number;
  readonly done: number;
  readonly state: "running" | "stopped" | "ended";
};

/** Counts first; then sends step by step, so that it can be watched and stopped. Then it shows what was delivered. */
export function Replay({
  title,
  filter,
  what = "parked",
  isNothing = false,
}: {
  readonly title: string;
  readonly filter: Redeliveries["filter"];
  /** Others than parked ones are sent in one step: what was sent stays pending until it is delivered. */
  readonly what?: "parked" | "pending" | "selected";
  /** There is none to send: it is not offered. */
  readonly isNothing?: boolean;
}) {
  const { redeliverMany } = useNotificationApi();
  const queries = useQueryClient();
  const isOneStep = what !== "parked";
  const when = what === "pending" ? "now" : "again";
  const [to, setTo] = useState<"original" | "registered">("original");
  const [run, setRun] = useState<Run>();
  const stops = useRef(false);
  useEffect(
    () => () => {
      // Nobody sees its progress any more.
      stops.current = true;
    },
    [],
  );
  const count = useMutation({ mutationFn: () => redeliverMany({ filter, to, dryRun: true }) });
  const replay = useMutation({
    mutationFn: async (total: number) => {
      stops.current = false;
      let done = 0;
      let id: string | null = null;
      setRun({ id, total, done, state: "running" });
      while (!stops.current && done < total) {
        const limit = Math.min(stepRows, total - done);
        const step: Awaited<ReturnType<typeof redeliverMany>> = await redeliverMany({
          filter,
          to,
          ...(!isOneStep && { limit }),
          ...(id !== null && { redelivery: id }),
        });
        done += step.redelivered;
        id = step.id ?? id;
        setRun({ id, total, done, state: "running" });
        if (isOneStep || step.redelivered === 0) break;
      }
      setRun({ id, total, done, state: stops.current ? "stopped" : "ended" });
    },
    onSettled: () => queries.invalidateQueries(),
  });
  const close = () => {
    setRun(undefined);
    count.reset();
    replay.reset();
  };
  const matched = count.data?.matched;
  const now = useNow();
  return (
    <Panel title={title}>
      <Stack gap="sm">
        {run === undefined && isNothing && (
          <Text size="sm" c="dimmed">
            {what === "parked" ? "There is none to send." : "Nothing waits."}
          </Text>
        )}
        {run === undefined && !isNothing && (
          <Group gap="xs">
            <Select
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
            <Button variant="default" loading={count.isPending} onClick={() => count.mutate()}>
              Count them first
            </Button>
            {matched !== undefined && matched > 0 && (
              <Button onClick={() => replay.mutate(matched)}>
                Send {matched.toLocaleString("en")} {when}
              </Button>
            )}
            {matched !== undefined && (
              <Text size="sm" role="status">
                {count.data === undefined || matched === 0
                  ? "There is none to send."
                  : `${matched.toLocaleString("en")} ${wouldBeSent[what]} ${selectionInWords(count.data.selection, now)}`}
              </Text>
            )}
          </Group>
        )}
        {run !== undefined && (
          <Stack gap={6}>
            <Progress value={run.total === 0 ? 100 : (100 * run.done) / run.total} aria-label="Progress" />
            <Group gap="sm">
              <Text size="sm" role="status">
                {run.done.toLocaleString("en")} of {run.total.toLocaleString("en")} due {when}
                {run.state === "stopped" && ": stopped"}
                {run.state === "ended" && ": done"}
              </Text>
              {run.state === "running" && !replay.isError ? (
                <>
                  <Button size="compact-xs" variant="default" onClick={() => (stops.current = true)}>
                    Stop
                  </Button>
                  <Text size="sm" c="dimmed">
                    It stops when you leave this page.
                  </Text>
                </>
              ) : (
                <Button size="compact-xs" variant="default" onClick={close}>
                  Close
                </Button>
              )}
            </Group>
            {run.state !== "running" && run.id !== null && <Delivered id={run.id} />}
          </Stack>
        )}
        {count.isError && <Failure error={count.error} />}
        {replay.isError && <Failure error={replay.error} />}
      </Stack>
    </Panel>
  );
}

/** What was counted: of which commands, since when, and where it goes. */
function selectionInWords({ commands, oldestAt, urls }: Selection, nowMs: number): string {
  const kinds = Object.entries(commands).map(([name, of]) => `${of.toLocaleString("en")} ${shownCommand(name)}`);
  const oldest = oldestAt === null ? "" : `, the oldest of ${clockTime(Date.parse(oldestAt), nowMs)}`;
  return `${kinds.join(", ")}${oldest}; to ${urls.map((url) => url ?? "the registered URL").join(", ")}.`;
}

const wouldBeSent = {
  parked: "would be sent again, each with a whole new schedule.",
  pending: "would be sent now; their schedules stay where they are.",
  selected: "would be sent: those that wait at once, the others again with a whole new schedule.",
} as const;

const refreshMs = 2_000;

/** The progress of a replay, until nothing of it is pending. */
export function Delivered({ id }: { readonly id: string }) {
  const { redelivery } = useNotificationApi();
  const found = useQuery({
    queryKey: ["redelivery", id],
    queryFn: () => redelivery(id),
    refetchInterval: ({ state }) => (state.data?.pending === 0 ? false : refreshMs),
  });
  if (found.data === undefined) return found.isError ? <Failure error={found.error} /> : null;
  const { redelivered, delivered, pending, failed, parked, held, nextAttemptAt } = found.data;
  const numbers: readonly (readonly [number, string])[] = [
    [pending, "pending"],
    [failed, "of them failed again, and are tried by their schedule"],
    [held.paused, "of them held, because the partner is paused"],
    [held.order, "of them held, until an earlier one of the chain was sent"],
    [parked, "parked again"],
  ];
  const rest = numbers.filter(([count]) => count > 0).map(([count, word]) => `${count.toLocaleString("en")} ${word}`);
  return (
    <>
      <Progress value={(100 * delivered) / redelivered} aria-label="Delivered" color={parked > 0 ? "red" : "teal"} />
      <Text size="sm" role="status">
        {[`${delivered.toLocaleString("en")} of ${redelivered.toLocaleString("en")} delivered`, ...rest].join(", ")}
        {nextAttemptAt !== null && (
          <>
            ; the next attempt <ComingTime at={nextAttemptAt} />
          </>
        )}
        {" · "}
        <Link href={`/replays/${id}`}>Link to this</Link>
      </Text>
    </>
  );
}

/** A replay by its address, for colleagues and for later. */
export function ReplayPage({ id }: { readonly id: string }) {
  return (
    <Page title="Replay">
      <Panel title="Sent again">
        <Stack gap={6}>
          <Delivered id={id} />
        </Stack>
      </Panel>
    </Page>
  );
}
