import { Button, Group, Progress, Select, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import type { api } from "../api/call.ts";
import { Failure } from "../display/failure.tsx";
import { Panel } from "../display/panel.tsx";

/** Rows per step of a replay: small enough to stop soon. */
const stepRows = 200;

export type ReplayFilter = NonNullable<Parameters<typeof api.redeliver>[0]>["filter"];
type Step = Omit<NonNullable<Parameters<typeof api.redeliver>[0]>, "filter">;
type Run = { readonly total: number; readonly done: number; readonly state: "running" | "stopped" | "ended" };

/** Counts first; then sends again step by step, so that it can be watched and stopped. */
export function Replay({
  title,
  redeliver,
  onSettled,
}: {
  readonly title: string;
  readonly redeliver: (step: Step) => ReturnType<typeof api.redeliver>;
  readonly onSettled: () => Promise<unknown>;
}) {
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
  const count = useMutation({ mutationFn: () => redeliver({ to, dryRun: true }) });
  const replay = useMutation({
    mutationFn: async (total: number) => {
      stops.current = false;
      let done = 0;
      setRun({ total, done, state: "running" });
      while (!stops.current && done < total) {
        const step = await redeliver({ to, limit: Math.min(stepRows, total - done) });
        done += step.redelivered;
        setRun({ total, done, state: "running" });
        if (step.matched === 0 || step.redelivered === 0) break;
      }
      setRun({ total, done, state: stops.current ? "stopped" : "ended" });
    },
    onSettled,
  });
  const close = () => {
    setRun(undefined);
    count.reset();
    replay.reset();
  };
  const matched = count.data?.matched;
  return (
    <Panel title={title}>
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
                  ? "There is none to send again."
                  : `${matched.toLocaleString("en")} would be sent again, each with a whole new schedule.`}
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
          </Stack>
        )}
        {count.isError && <Failure error={count.error} />}
        {replay.isError && <Failure error={replay.error} />}
      </Stack>
    </Panel>
  );
}
