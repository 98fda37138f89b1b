import { Button } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api } from "../api/call.ts";
import type { Endpoint } from "../api/operations.ts";
import { Empty } from "../display/empty.tsx";
import { Failure } from "../display/failure.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { State } from "../display/state.tsx";
import { ComingTime } from "../display/time.tsx";
import { reasonInWords } from "../notifications/words.ts";
import { useMayManage, useSession } from "../session/session.ts";
import { partnerColumn } from "./partner-name.tsx";

const rows = 100;
const lookEveryMs = 5_000;

const states = {
  open: { tone: "bad", word: "Tripped" },
  gone: { tone: "bad", word: "Gone (410)" },
  closed: { tone: "good", word: "Closed" },
} as const;

/** Endpoints that have failed, with their circuits: of one partner, or of all. */
export function Endpoints({ partner }: { readonly partner?: string }) {
  const { session } = useSession();
  const isOperator = session.kind === "operator";
  const queries = useQueryClient();
  const mayAct = useMayManage();
  const found = useQuery({
    queryKey: ["endpoints", partner ?? ""],
    queryFn: () => (isOperator ? api.searchEndpoints({ limit: rows, partner }) : api.listEndpoints({ limit: rows })),
    refetchInterval: lookEveryMs,
  });
  const close = useMutation({
    mutationFn: ({ id }: Endpoint) => (isOperator ? api.closePartnersEndpoint(id) : api.closeEndpoint(id)),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["endpoints"] }),
  });
  const columns: readonly ListColumn<Endpoint>[] = [
    { name: "Circuit", show: ({ state }) => <State {...states[state]} /> },
    { name: "Endpoint", show: ({ target }) => target, look: "wraps" },
    ...(isOperator && partner === undefined ? [partnerColumn] : []),
    { name: "Failures", show: ({ failures }) => failures, look: "number", from: "tablet" },
    { name: "Last failure", show: ({ lastReason }) => lastReason !== null && reasonInWords(lastReason) },
    {
      name: "Next try",
      show: ({ probeAt }) => probeAt !== null && <ComingTime at={probeAt} />,
      look: "nowrap",
      from: "tablet",
    },
    {
      name: "Action",
      show: (one) =>
        mayAct &&
        one.state !== "closed" && (
          <Button
            size="compact-xs"
            variant="default"
            loading={close.isPending && close.variables.id === one.id}
            onClick={() => close.mutate(one)}
          >
            Close the circuit
          </Button>
        ),
      look: "actions",
    },
  ];
  return (
    <>
      {close.isError && <Failure error={close.error} />}
      <List
        of={found}
        items={found.data?.items ?? []}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <Empty title="No endpoint has failed">One appears here when deliveries to it fail, with its circuit.</Empty>
        }
      />
    </>
  );
}
