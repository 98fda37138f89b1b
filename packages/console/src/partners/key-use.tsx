import { useQuery } from "@tanstack/react-query";
import { api } from "../api/call.ts";
import type { KeyUse } from "../api/operations.ts";
import { State } from "../display/state.tsx";
import { Time } from "../display/time.tsx";
import { useSession } from "../session/session.ts";

const lookEveryMs = 10_000;
type Use = KeyUse["items"][number];

/** Results of the newest deliveries, by the version of the encryption key that sealed them. */
export function useKeyUse(partnerId: string): ReadonlyMap<string, Use> {
  const isOperator = useSession().session.kind === "operator";
  const found = useQuery({
    queryKey: ["key-use", partnerId],
    queryFn: () => (isOperator ? api.getKeyUse(partnerId) : api.getOwnKeyUse()),
    refetchInterval: lookEveryMs,
  });
  return new Map((found.data?.items ?? []).map((use) => [use.keyId, use]));
}

/** Whether the endpoint opens what is sealed with this version. */
export function KeyUseState({ use }: { readonly use: Use | undefined }) {
  if (use === undefined) return null;
  const { accepted, failed, lastAcceptedAt } = use;
  const counts = failed === 0 ? `${accepted} accepted` : `${accepted} accepted, ${failed} not`;
  return (
    <>
      <State tone={accepted === 0 ? "bad" : failed > accepted ? "wait" : "good"} word={counts} />
      {lastAcceptedAt !== null && (
        <>
          , last <Time at={lastAcceptedAt} />
        </>
      )}
    </>
  );
}
