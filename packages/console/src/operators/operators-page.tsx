import { Alert, Button, Group, NumberInput, Select, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError, api } from "../api/call.ts";
import type { Operator } from "../api/operations.ts";
import { Confirm } from "../display/confirm.tsx";
import { Empty } from "../display/empty.tsx";
import { Failure } from "../display/failure.tsx";
import { Page } from "../display/page.tsx";
import { Panel } from "../display/panel.tsx";
import { Loading } from "../display/rows.tsx";
import { Secret } from "../display/secret.tsx";
import { State } from "../display/state.tsx";
import { Time, useNow } from "../display/time.tsx";

const roles = [
  { value: "viewer", label: "viewer: reads" },
  { value: "operator", label: "operator: acts, too" },
  { value: "admin", label: "admin: registers, rotates keys, adds operators" },
];

/** The operators; their tokens are shown once. */
export function OperatorsPage() {
  const queries = useQueryClient();
  const found = useQuery({ queryKey: ["operators"], queryFn: () => api.listOperators() });
  const refresh = () => queries.invalidateQueries({ queryKey: ["operators"] });
  return (
    <Page title="Operators">
      <Add onAdded={refresh} />
      {found.isPending && <Loading />}
      {found.isError && <Failure error={found.error} onRetry={() => void found.refetch()} />}
      {found.data?.items.length === 0 && (
        <Empty title="No operator by name yet">Until then, the token of the settings is the only one.</Empty>
      )}
      {found.data !== undefined && found.data.items.length > 0 && <List items={found.data.items} onChanged={refresh} />}
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
  const fields = add.error instanceof ApiError ? add.error.fields : {};
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
          <Alert color="accent" variant="light" mt="md" title={`The token of ${add.data.name}, shown this once`}>
            <Secret label="Token" value={add.data.token} />
          </Alert>
        )}
      </form>
    </Panel>
  );
}

function List({
  items,
  onChanged,
}: {
  readonly items: readonly Operator[];
  readonly onChanged: () => Promise<unknown>;
}) {
  const now = useNow();
  return (
    <div className="table-scroll">
      <table className="dense-table">
        <thead>
          <tr>
            <th scope="col">Operator</th>
            <th scope="col">Role</th>
            <th scope="col">Token</th>
            <th scope="col" className="wide">
              Last used
            </th>
            <th scope="col" className="wide">
              Added
            </th>
            <th scope="col">
              <span className="unseen">Action</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((one) => (
            <tr key={one.id}>
              <td className="wraps">{one.name}</td>
              <td>{one.role}</td>
              <td>
                {one.revokedAt !== null ? (
                  <State tone="quiet" word="Revoked" />
                ) : Date.parse(one.expiresAt) <= now ? (
                  <State tone="quiet" word="Expired" />
                ) : (
                  <>
                    until <Time at={one.expiresAt} />
                  </>
                )}
              </td>
              <td className="nowrap wide">{one.lastUsedAt === null ? "never" : <Time at={one.lastUsedAt} />}</td>
              <td className="nowrap wide">
                <Time at={one.createdAt} />
              </td>
              <td className="number">
                {one.revokedAt === null && (
                  <Confirm
                    label="Revoke"
                    title={`Revoke the token of ${one.name}?`}
                    text="Every instance refuses it within two seconds, and the sessions that it began end."
                    onConfirm={async () => {
                      await api.revokeOperator(one.id);
                      await onChanged();
                    }}
                  />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
