import { Group, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { ClearingException, ClearingFile } from "../api/operations.ts";
import { usePages } from "../api/query.ts";
import { shownAmount, shownMinor } from "../display/amount.ts";
import { Confirm } from "../display/confirm.tsx";
import { List, type ListColumn, Table } from "../display/list.tsx";
import { Loaded } from "../display/loaded.tsx";
import { Fields, Page, PageTabs, Panel, useFilters } from "../display/page.tsx";
import { State } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { useMay } from "../session/session.ts";
import { AcquirerFilter } from "./acquirer-filter.tsx";

const states = [
  { value: "open", label: "Open" },
  { value: "resolved", label: "Resolved" },
] as const;

const fileColumns: readonly ListColumn<ClearingFile>[] = [
  {
    name: "File",
    show: ({ id, name }) => <Link href={`/clearing/${id}`}>{name || "Without a name"}</Link>,
    look: "clipped",
  },
  { name: "Received", show: ({ receivedAt }) => <Time at={receivedAt} />, look: "nowrap", from: "tablet" },
  { name: "Acquirer", show: ({ acquirer }) => acquirer || "That of the settings", from: "tablet" },
  { name: "State", show: ({ state }) => <FileState state={state} /> },
  { name: "Lines", show: ({ lines }) => lines, look: "number", from: "tablet" },
  { name: "Matched", show: ({ matched }) => matched, look: "number" },
  {
    name: "Exceptions",
    show: ({ missingHere, missingThere, different, chargebacks }) =>
      missingHere + missingThere + different + chargebacks,
    look: "number",
  },
];

/** The acquirers' clearing files beside the ledger: what is to be worked off first. */
export function ClearingPage() {
  const { params, set } = useFilters();
  const acquirer = params.get("acquirer") ?? undefined;
  const state = states.find(({ value }) => value === (params.get("state") ?? "open"))?.value;
  return (
    <Page title="Clearing">
      <PageTabs
        tabs={{
          Exceptions: () => (
            <>
              <Group mb="sm">
                <Select
                  w={140}
                  aria-label="State"
                  data={[{ value: "any", label: "Any state" }, ...states]}
                  allowDeselect={false}
                  value={state ?? "any"}
                  onChange={(value) => set({ state: value })}
                />
                <AcquirerFilter />
              </Group>
              <ClearingExceptions state={state} acquirer={acquirer} />
            </>
          ),
          Files: () => (
            <>
              <Group mb="sm">
                <AcquirerFilter />
              </Group>
              <Files acquirer={acquirer} />
            </>
          ),
        }}
      />
    </Page>
  );
}

function Files({ acquirer }: { readonly acquirer: string | undefined }) {
  const found = usePages(["clearing-files", acquirer], (page, options) =>
    api.listClearingFiles({ acquirer, ...page }, options),
  );
  return (
    <List
      of={found}
      columns={fileColumns}
      keyOf={({ id }) => id}
      to={({ id }) => `/clearing/${id}`}
      empty={[
        "No clearing file has come yet",
        "Describe the acquirer's file in its profile, then post it, or drop it into the clearing folder.",
      ]}
    />
  );
}

function FileState({ state }: Pick<ClearingFile, "state">) {
  return state === "done" ? <State tone="good" word="Matched" /> : <State tone="wait" word="Being matched" />;
}

type Total = ClearingFile["totals"][number];

const pollMs = 2_000;
const totalColumns: readonly ListColumn<Total>[] = [
  { name: "Kind", show: ({ kind }) => kind },
  { name: "Lines", show: ({ lines }) => lines, look: "number" },
  { name: "Total", show: ({ totalMinor, currency }) => shownMinor(totalMinor, currency), look: "number" },
];

/** One clearing file: its counts, its totals, and what is to be worked off. */
export function ClearingFilePage({ id }: { readonly id: string }) {
  const file = useQuery({
    queryKey: ["clearing-file", id],
    queryFn: ({ signal }) => api.inspectClearingFile(id, { signal }),
    refetchInterval: ({ state }) => (state.data?.state === "matching" ? pollMs : false),
  });
  return (
    <Loaded of={file} missing={["There is no such clearing file", "It may be older than is kept."]}>
      {(data) => (
        <Page title={data.name || "Clearing file"} actions={<FileState state={data.state} />}>
          <Panel title="The file beside the ledger">
            <Fields
              of={{
                Acquirer: data.acquirer || "That of the settings",
                Received: <Time at={data.receivedAt} />,
                Lines: data.lines,
                Matched: `${data.matched}`,
                "Waiting for their transaction": `${data.waiting}`,
                "Missing here": `${data.missingHere}`,
                "Missing there": `${data.missingThere}`,
                Different: `${data.different}`,
                Fees: `${data.fees}`,
                Chargebacks: `${data.chargebacks}`,
              }}
            />
          </Panel>
          <Panel title="Totals of the file" flush>
            <Table items={data.totals} columns={totalColumns} keyOf={({ kind, currency }) => `${kind} ${currency}`} />
          </Panel>
          <Panel title="Exceptions" flush>
            <ClearingExceptions file={id} />
          </Panel>
        </Page>
      )}
    </Loaded>
  );
}

const kinds = {
  missing_here: "Missing here",
  missing_there: "Missing there",
  different: "Different",
  chargeback: "Chargeback",
} as const;

const exceptionColumns: readonly ListColumn<ClearingException>[] = [
  { name: "Since", show: ({ createdAt }) => <Time at={createdAt} />, look: "nowrap", from: "tablet" },
  {
    name: "Exception",
    show: ({ kind, transactionId }) =>
      transactionId === null ? kinds[kind] : <Link href={`/transactions/${transactionId}`}>{kinds[kind]}</Link>,
    look: "nowrap",
  },
  { name: "State", show: ({ state }) => <State {...exceptionStates[state]} />, from: "tablet" },
  { name: "Acquirer", show: ({ acquirer }) => acquirer || "That of the settings", from: "desktop" },
  {
    name: "Line",
    show: ({ line, fileId }) => line && <Link href={`/clearing/${fileId}`}>{`${line.kind}, line ${line.line}`}</Link>,
    from: "tablet",
  },
  { name: "Reference", show: ({ line, here }) => (line ?? here)?.refId, look: "mono", from: "tablet" },
  { name: "What", show: (item) => <What of={item} />, look: "prose" },
  { name: "Actions", show: (item) => <Resolve of={item} />, look: "actions" },
];

const exceptionStates = {
  open: { tone: "bad", word: "Open" },
  resolved: { tone: "good", word: "Resolved" },
} as const;

/** The differences between clearing files and the ledger, the newest first. */
function ClearingExceptions(filter: {
  readonly state?: "open" | "resolved" | undefined;
  readonly acquirer?: string | undefined;
  readonly file?: string;
}) {
  const found = usePages(["clearing-exceptions", filter], (page, options) =>
    api.searchClearingExceptions({ ...filter, ...page }, options),
  );
  return (
    <List
      of={found}
      columns={exceptionColumns}
      keyOf={({ id }) => id}
      empty={[
        "Both books agree",
        "A line of a clearing file that differs from the ledger appears here, and a charge that no file has.",
      ]}
    />
  );
}

/** The amount, how the two sides differ, the file's own reason, and why it was resolved. */
function What({ of: { line, here, differences, reason } }: { readonly of: ClearingException }) {
  const there = line && shownMinor(line.minor, line.currency);
  const amount = there ?? shownAmount(here?.amount, here?.currency);
  return (
    <>
      {differences.length === 0 && amount}
      {differences.map(({ field, ...sides }) => {
        const [ours, theirs] =
          field === "amount" ? [shownAmount(here?.amount, here?.currency), there] : [sides.here, sides.there];
        return (
          <div key={field}>
            {field}: {ours || "nothing"} here, {theirs || "nothing"} there
          </div>
        );
      })}
      {line !== null && line.reason !== "" && <div>{line.reason}</div>}
      {reason !== null && <div>Resolved: {reason}</div>}
    </>
  );
}

function Resolve({ of: { id, state } }: { readonly of: ClearingException }) {
  const mayAct = useMay("operator");
  if (!mayAct || state !== "open") return null;
  return (
    <Confirm
      label="Resolve"
      title="Mark this exception as worked off?"
      text="No money moves by it: the reason says what was done, and the audit keeps it."
      needsReason
      onConfirm={(reason) => api.resolveClearingException(id, { reason })}
    />
  );
}
