import { Button } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api } from "../api/call.ts";
import type { Endpoint } from "../api/operations.ts";
import { Empty } from "../display/empty.tsx";
import { Failure } from "../display/failure.tsx";
import { Loading } from "../display/rows.tsx";
import { State } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { reasonInWords } from "../notifications/words.ts";
import { useMay, useSession } from "../session/session.ts";
import { PartnerName } from "./partner-name.tsx";

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
  const mayAct = useMay("operator") || !isOperator;
  const found = useQuery({
    queryKey: ["endpoints", partner ?? ""],
    queryFn: () => (isOperator ? api.searchEndpoints({ limit: rows, partner }) : api.listEndpoints({ limit: rows })),
    refetchInterval: lookEveryMs,
  });
  const close = useMutation({
    mutationFn: ({ id }: Endpoint) => (isOperator ? api.closePartnersEndpoint(id) : api.closeEndpoint(id)),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["endpoints"] }),
  });
  if (found.isPending) return <Loading />;
  if (found.isError) return <Failure error={found.error} onRetry={() => void found.refetch()} />;
  if (found.data.items.length === 0)
    return <Empty title="No endpoint has failed">One appears here when deliveries to it fail, with its circuit.</Empty>;
  return (
    <>
      {close.isError && <Failure error={close.error} />}
      <div className="table-scroll">
        <table className="dense-table">
          <thead>
            <tr>
              <th scope="col">Circuit</th>
              <th scope="col">Endpoint</th>
              {isOperator && partner === undefined && <th scope="col">Partner</th>}
              <th scope="col" className="number">
                Failures
              </th>
              <th scope="col">Last</th>
              <th scope="col">Next try</th>
              <th scope="col">
                <span className="unseen">Action</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {found.data.items.map((one) => (
              <tr key={one.id}>
                <td>
                  <State {...states[one.state]} />
                </td>
                <td className="wraps">{one.target}</td>
                {isOperator && partner === undefined && (
                  <td>
                    <PartnerName id={one.partnerId} />
                  </td>
                )}
                <td className="number">{one.failures}</td>
                <td>{one.lastReason === null ? "" : reasonInWords(one.lastReason)}</td>
                <td className="nowrap">{one.probeAt === null ? "" : <Time at={one.probeAt} />}</td>
                <td className="number">
                  {mayAct && one.state !== "closed" && (
                    <Button
                      size="compact-xs"
                      variant="default"
                      loading={close.isPending && close.variables.id === one.id}
                      onClick={() => close.mutate(one)}
                    >
                      Close the circuit
                    </Button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
