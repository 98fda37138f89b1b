import { Group, Select, Tabs } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "wouter";
import { AcquirerSelect } from "../acquirers/acquirer-select.tsx";
import { api } from "../api/call.ts";
import type { ClearingFile } from "../api/operations.ts";
import { Empty } from "../display/empty.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Page } from "../display/page.tsx";
import { State } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { ClearingExceptions } from "./exceptions.tsx";

const rows = 50;
const states = [
  { value: "open", label: "Open" },
  { value: "resolved", label: "Resolved" },
] as const;

const columns: readonly ListColumn<ClearingFile>[] = [
  {
    name: "File",
    show: ({ id, name }) => <Link href={`/clearing/${id}`}>{name || "Without a name"}</Link>,
    look: "clipped",
  },
  { name: "Received", show: ({ receivedAt }) => <Time at={receivedAt} />, look: "nowrap" },
  { name: "Acquirer", show: ({ acquirer }) => acquirer || "That of the settings", from: "tablet" },
  { name: "State", show: ({ state }) => <FileState state={state} /> },
  { name: "Lines", show: ({ lines }) => lines, look: "number" },
  { name: "Matched", show: ({ matched }) => matched, look: "number" },
  { name: "Missing here", show: ({ missingHere }) => missingHere, look: "number" },
  { name: "Missing there", show: ({ missingThere }) => missingThere, look: "number" },
  { name: "Different", show: ({ different }) => different, look: "number" },
];

/** The acquirers' clearing files beside the ledger: what is to be worked off first. */
export function ClearingPage() {
  const [params, setParams] = useSearchParams();
  const tab = params.get("tab") === "files" ? "files" : "exceptions";
  const acquirer = params.get("acquirer") ?? undefined;
  const state = states.find(({ value }) => value === (params.get("state") ?? "open"))?.value;
  const set = (name: string, value: string | null) =>
    setParams((before) => {
      const next = new URLSearchParams(before);
      if (value) next.set(name, value);
      else next.delete(name);
      return next;
    });
  const byAcquirer = <AcquirerSelect value={acquirer ?? null} onChange={(value) => set("acquirer", value)} />;
  return (
    <Page title="Clearing">
      <Tabs value={tab} onChange={(value) => setParams(value === "files" ? { tab: value } : {})} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="exceptions">Exceptions</Tabs.Tab>
          <Tabs.Tab value="files">Files</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="exceptions">
          <Group mb="sm">
            <Select
              size="xs"
              w={140}
              aria-label="State"
              data={[{ value: "any", label: "Any state" }, ...states]}
              allowDeselect={false}
              value={state ?? "any"}
              onChange={(value) => set("state", value)}
            />
            {byAcquirer}
          </Group>
          <ClearingExceptions state={state} acquirer={acquirer} />
        </Tabs.Panel>
        <Tabs.Panel value="files">
          <Group mb="sm">{byAcquirer}</Group>
          <Files acquirer={acquirer} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

function Files({ acquirer }: { readonly acquirer: string | undefined }) {
  const pages = useInfiniteQuery({
    queryKey: ["clearing-files", acquirer],
    queryFn: ({ pageParam, signal }) => api.listClearingFiles({ acquirer, limit: rows, after: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  return (
    <List
      of={pages}
      items={pages.data?.pages.flatMap((page) => page.items) ?? []}
      columns={columns}
      keyOf={({ id }) => id}
      to={({ id }) => `/clearing/${id}`}
      empty={
        <Empty title="No clearing file has come yet">
          Describe the acquirer's file in its profile, then post it, or drop it into the clearing folder.
        </Empty>
      }
    />
  );
}

export function FileState({ state }: Pick<ClearingFile, "state">) {
  return state === "done" ? <State tone="good" word="Matched" /> : <State tone="wait" word="Being matched" />;
}
