import { Alert, NumberInput, Select, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { api } from "../api/call.ts";
import type { Operator } from "../api/operations.ts";
import { Confirm } from "../display/confirm.tsx";
import { Secret } from "../display/copied.tsx";
import { Form, numberOf, useForm } from "../display/form.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Page, Panel } from "../display/page.tsx";
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
  const found = useQuery({ queryKey: ["operators"], queryFn: () => api.listOperators() });
  return (
    <Page title="Operators">
      <Add />
      <List
        of={found}
        columns={columns}
        keyOf={({ id }) => id}
        empty={["No operator by name yet", "Until then, the token of the settings is the only one."]}
      />
    </Page>
  );
}

function Add() {
  const queries = useQueryClient();
  const form = useForm(
    { name: "", role: "viewer", expiresInDays: "90" },
    ({ name, role, expiresInDays: days }) =>
      api.addOperator({
        name,
        role: role as Operator["role"],
        ...(days !== "" && { expiresInDays: numberOf(days) }),
      }),
    (_, { set }) => {
      set({ name: "" });
      return queries.invalidateQueries({ queryKey: ["operators"] });
    },
  );
  const added = form.sending.data;
  return (
    <Panel title="Add an operator">
      <Form of={form} submit="Add" isInRow>
        <TextInput label="Name" required w={220} {...form.text("name")} />
        <Select label="Role" w={300} data={roles} {...form.choice("role")} />
        <NumberInput label="Days" w={90} {...form.number("expiresInDays")} />
      </Form>
      {added !== undefined && (
        <Alert color="accent" variant="light" mt="md" title={`The token of ${added.name}, shown only once`}>
          <Secret label="Token" value={added.token} />
        </Alert>
      )}
    </Panel>
  );
}

function Revoke({ one: { id, name } }: { readonly one: Operator }) {
  return (
    <Confirm
      label="Revoke"
      title={`Revoke the token of ${name}?`}
      text="Every instance refuses it within two seconds, and the sessions that it began end."
      onConfirm={() => api.revokeOperator(id)}
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
