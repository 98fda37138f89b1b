import { useQuery } from "@tanstack/react-query";
import { api } from "../api/call.ts";
import type { EndpointCertificates } from "../api/operations.ts";
import { Empty } from "../display/empty.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Panel } from "../display/panel.tsx";
import { State } from "../display/state.tsx";
import { duration, Time, useNow } from "../display/time.tsx";

const soonMs = 14 * 86_400_000;
const owners = {
  server: "The endpoint's server",
  client: "Ours, which it asks for",
  authority: "An authority that alone is trusted for it",
} as const;

const columns: readonly ListColumn<EndpointCertificates["items"][number]>[] = [
  { name: "State", show: ({ endsAt }) => <CertificateState endsAt={endsAt} /> },
  {
    name: "Whose",
    show: ({ whose, target }) => (
      <>
        {owners[whose]} {target}
      </>
    ),
    look: "wraps",
  },
  { name: "Ends", show: ({ endsAt, problem }) => (endsAt === null ? problem : <Time at={endsAt} />), look: "wraps" },
];

/** When the certificates end that deliveries depend on. The endpoint is connected to when this is opened. */
export function Certificates({ partner }: { readonly partner?: string }) {
  const found = useQuery({
    queryKey: ["certificates", partner ?? ""],
    queryFn: () => (partner === undefined ? api.getCertificates() : api.getPartnerCertificates(partner)),
  });
  return (
    <Panel title="Certificates" flush>
      <List
        of={found}
        items={found.data?.items ?? []}
        columns={columns}
        keyOf={({ whose, target, endsAt }) => `${whose} ${target} ${endsAt}`}
        empty={<Empty title="No callback URL is registered">Its server's certificate appears here.</Empty>}
      />
    </Panel>
  );
}

function CertificateState({ endsAt }: { readonly endsAt: string | null }) {
  const now = useNow();
  const leftMs = endsAt === null ? null : Date.parse(endsAt) - now;
  if (leftMs === null) return <State tone="bad" word="Not seen" />;
  if (leftMs <= 0) return <State tone="bad" word="Ended" />;
  if (leftMs < soonMs) return <State tone="wait" word={`Ends in ${duration(leftMs)}`} />;
  return <State tone="good" word="Valid" />;
}
