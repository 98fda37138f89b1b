import { Alert, Button, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import type { NotifiedCommand } from "@paybell/contract";
import { notifiedCommands } from "@paybell/contract";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/call.ts";
import type { Endpoint, EndpointCertificates } from "../api/operations.ts";
import { Confirm } from "../display/confirm.tsx";
import { FormProblem, problemOf } from "../display/form.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Failure } from "../display/loaded.tsx";
import { Panel } from "../display/page.tsx";
import { State } from "../display/state.tsx";
import { ComingTime, duration, Time, useNow } from "../display/time.tsx";
import { reasonInWords } from "../notifications/words.ts";
import { useMayManage, useSession } from "../session/session.ts";
import { partnerColumn } from "./partner.tsx";

const rows = 100;
const refreshMs = 5_000;

const circuits = {
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
    refetchInterval: refreshMs,
  });
  const close = useMutation({
    mutationFn: ({ id }: Endpoint) => (isOperator ? api.closePartnersEndpoint(id) : api.closeEndpoint(id)),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["endpoints"] }),
  });
  const columns: readonly ListColumn<Endpoint>[] = [
    { name: "Circuit", show: ({ state }) => <State {...circuits[state]} /> },
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
    <Panel title="Circuits of endpoints" flush>
      {close.isError && <Failure error={close.error} />}
      <List
        of={found}
        columns={columns}
        keyOf={({ id }) => id}
        empty={[
          "No circuit was tripped",
          "An endpoint that cannot be reached, or answers 5xx, appears here. Other answers trip no circuit: each notification is retried by its own schedule.",
        ]}
      />
    </Panel>
  );
}

const soonMs = 14 * 86_400_000;
const owners = {
  server: "The endpoint's server",
  client: "Our client certificate for",
  authority: "A trusted authority for",
} as const;

const certificateColumns: readonly ListColumn<EndpointCertificates["items"][number]>[] = [
  { name: "State", show: (one) => <CertificateState {...one} /> },
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
        columns={certificateColumns}
        keyOf={({ whose, target, endsAt }) => `${whose} ${target} ${endsAt}`}
        empty={["No callback URL is registered", "Its server's certificate appears here."]}
      />
    </Panel>
  );
}

function CertificateState({ endsAt, problem }: Pick<EndpointCertificates["items"][number], "endsAt" | "problem">) {
  const now = useNow();
  const leftMs = endsAt === null ? null : Date.parse(endsAt) - now;
  if (leftMs === null) return <State tone="bad" word={problem?.includes("certificate") ? "Refused" : "Not seen"} />;
  if (leftMs <= 0) return <State tone="bad" word="Ended" />;
  if (leftMs < soonMs) return <State tone="wait" word={`Ends in ${duration(leftMs)}`} />;
  return <State tone="good" word="Valid" />;
}

/** A partner's own change of a callback URL: registered once the new one accepted a test IPN. */
export function ChangeUrl() {
  const [url, setUrl] = useState("");
  const [command, setCommand] = useState<NotifiedCommand | null>(null);
  const change = useMutation({
    mutationFn: (callBackUrl: string | null) => api.changeCallbackUrl({ callBackUrl, ...(command && { command }) }),
    onSuccess: () => setUrl(""),
  });
  const whose = command === null ? "all IPNs, unless their command has a URL of its own," : `IPNs of ${command}`;
  return (
    <Panel title="Change a callback URL">
      <Stack gap="sm" align="start">
        {change.isSuccess && (
          <Alert color="green" variant="light" role="status">
            {change.variables === null
              ? "It was removed: these IPNs go to the callback URL."
              : `It accepted the test IPN, and is registered: ${change.variables}`}
          </Alert>
        )}
        <FormProblem error={change.error} names={["callBackUrl", "command"]} />
        <Text>
          A test IPN is sent to the new URL. When it answers 2xx, the URL is registered, also for what is queued.
          Otherwise nothing changes.
        </Text>
        <Group align="end" gap="sm">
          <Select
            label="For"
            data={[...notifiedCommands]}
            value={command}
            onChange={setCommand}
            placeholder="All without their own"
            clearable
          />
          <TextInput
            label="New URL"
            placeholder="https://shop.example/ipn"
            value={url}
            onChange={(event) => setUrl(event.currentTarget.value)}
            error={problemOf(change.error, "callBackUrl")}
            w={420}
            maw="100%"
          />
        </Group>
        <Group gap="sm">
          <Confirm
            label="Test and change"
            title="Change the callback URL?"
            text={`A test IPN is sent to ${url.trim() || "it"}; when it is accepted, ${whose} go there.`}
            onConfirm={() => change.mutateAsync(url.trim())}
          />
          {command !== null && (
            <Confirm
              label={`Remove the URL of ${command}`}
              title={`Remove the URL of ${command}?`}
              text={`IPNs of ${command} go to the callback URL then, also those that wait.`}
              onConfirm={() => change.mutateAsync(null)}
            />
          )}
        </Group>
      </Stack>
    </Panel>
  );
}
