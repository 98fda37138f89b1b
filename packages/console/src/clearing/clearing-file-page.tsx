import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { api } from "../api/call.ts";
import type { ClearingFile } from "../api/operations.ts";
import { shownMinor } from "../display/amount.ts";
import { Failure } from "../display/failure.tsx";
import { Fields } from "../display/fields.tsx";
import { type ListColumn, Table } from "../display/list.tsx";
import { Page } from "../display/page.tsx";
import { Panel } from "../display/panel.tsx";
import { Loading } from "../display/rows.tsx";
import { Time } from "../display/time.tsx";
import { FileState } from "./clearing-page.tsx";
import { ClearingExceptions } from "./exceptions.tsx";

type Total = ClearingFile["totals"][number];

const pollMs = 2_000;
const columns: readonly ListColumn<Total>[] = [
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
  if (file.isPending) return <Loading />;
  if (file.isError) return <Failure error={file.error} onRetry={() => void file.refetch()} />;
  const { data } = file;
  return (
    <Page title={data.name || "Clearing file"} actions={<FileState state={data.state} />}>
      <Stack gap="md">
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
        <Panel title="Totals of the file">
          <Table items={data.totals} columns={columns} keyOf={({ kind, currency }) => `${kind} ${currency}`} />
        </Panel>
        <Panel title="Exceptions">
          <ClearingExceptions file={id} />
        </Panel>
      </Stack>
    </Page>
  );
}
