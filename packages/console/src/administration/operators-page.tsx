import { Alert, Button, Group, NumberInput, Select, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, CallError } from "../api/call.ts";
import type { Operator } from "../api/operations.ts";
import { Confirm } from "../display/confirm.tsx";
import { Secret } from "../display/copied.tsx";
import { Failure } from "../display/failure.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Empty, Page, Panel } from "../display/page.tsx";
import { State } from "../display/state.tsx";
import { Time, useNow } from "../display/time.tsx";

const roles = [
  { value: "viewer", label: "viewer: reads" },
  { value: "operator", label: "operator: acts, too" },
  { value: "admin", label: "admin: registers, rotates keys, adds operators" },
];

const columns: readonly ListColumn<Operator>[] = [
  { name: "Operator", show: ({ name }) => name, look: "wraps" },
  { name: "Role", show: ({ role }) => role },
  { name: "Token", show: (one) => <TokenState one={one} /> },
  {
    name: "Last used",
    show: ({ lastUsedAt }) => (lastUsedAt === null ? "never" : <Time at={lastUsedAt} />),
    look: "nowrap",
    from: "tablet",
  },
  { name: "Added", show: ({ createdAt }) => <Time at={createdAt} />, look: "nowrap", from: "tablet" },
  { name: "Action", show: (one) => one.revokedAt === null && <Revoke one={one} />, look: "actions" },
];

/** The operators; their tokens are shown once. */
export function OperatorsPage() {
  const queries = useQueryClient();
  const found = useQuery({ queryKey: ["operators"], queryFn: () => api.listOperators() });
  const refresh = () => queries.invalidateQueries({ queryKey: ["operators"] });
  return (
    <Page title="Operators">
      <Add onAdded={refresh} />
      <List
        of={found}
        items={found.data?.items ?? []}
        columns={columns}
        keyOf={({ id }) => id}
        empty={<Empty title="No operator by name yet">Until then, the token of the settings is the only one.</Empty>}
      />
    </Page>
  );
}

function Add({ onAdded }: { readonly onAdded: () => Promise<unknown> }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Operator["role"]>("viewer");
  const [days, setDays] = useState<string | number>(90);
  const add = useMutation({
    mutationFn: () => api.addOperator({ name, role, ...(days !== "" && { expiresInDays: Number(days) }) }),
    onSuccess: () => {
      setName("");
      return onAdded();
    },
    gcTime: 0,
  });
  const fields = add.error instanceof CallError ? add.error.fields : {};
  return (
    <Panel title="Add an operator">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          add.mutate();
        }}
      >
        <Group gap="sm" align="start">
          <TextInput
            size="xs"
            label="Name"
            required
            w={220}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={fields["name"]}
          />
          <Select
            size="xs"
            label="Role"
            w={300}
            data={roles}
            value={role}
            onChange={(value) => setRole((value ?? "viewer") as Operator["role"])}
            allowDeselect={false}
            error={fields["role"]}
          />
          <NumberInput size="xs" label="Days" w={90} value={days} onChange={setDays} error={fields["expiresInDays"]} />
          <Button size="xs" type="submit" mt={22} loading={add.isPending}>
            Add
          </Button>
        </Group>
        {add.isError && Object.keys(fields).length === 0 && <Failure error={add.error} />}
        {add.data !== undefined && (
          <Alert color="accent" variant="light" mt="md" title={`The token of ${add.data.name}, shown only once`}>
            <Secret label="Token" value={add.data.token} />
          </Alert>
        )}
      </form>
    </Panel>
  );
}

function Revoke({ one: { id, name } }: { readonly one: Operator }) {
  const queries = useQueryClient();
  return (
    <Confirm
      label="Revoke"
      title={`Revoke the token of ${name}?`}
      text="Every instance refuses it within two seconds, and the sessions that it began end."
      onConfirm={() => api.revokeOperator(id).then(() => queries.invalidateQueries({ queryKey: ["operators"] }))}
    />
  );
}

function TokenState({ one }: { readonly one: Operator }) {
  const now = useNow();
  if (one.revokedAt !== null) return <State tone="quiet" word="Revoked" />;
  if (Date.parse(one.expiresAt) <= now) return <State tone="quiet" word="Expired" />;
  return (
    <>
      until <Time at={one.expiresAt} />
    </>
  );
}
