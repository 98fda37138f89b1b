import { Alert, Button, Group, Stack, TextInput } from "@mantine/core";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api, CallError } from "../api/call.ts";
import type { Terminal } from "../api/operations.ts";
import { Confirm } from "../display/confirm.tsx";
import { Failure } from "../display/failure.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Empty, Panel } from "../display/page.tsx";
import { useMay } from "../session/session.ts";

const rows = 100;

const fields = [
  ["tid", "Terminal (tid)", ""],
  ["mid", "Merchant (mid)", ""],
  ["merchantName", "Merchant's name", ""],
  ["merchantAddress", "Its address", ""],
  ["merchantId", "Merchant's own id", ""],
  ["deviceId", "Device id", "Its serial number"],
  ["appName", "App", ""],
  ["acquirer", "Acquirer", "Empty: that of the settings"],
] as const satisfies readonly (readonly [keyof Terminal, string, string])[];
const required: readonly string[] = ["tid", "mid"];
const nothing = Object.fromEntries(fields.map(([name]) => [name, ""])) as unknown as Terminal;

/** A partner's terminals: registered, changed and released. */
export function Terminals({ partner }: { readonly partner: string }) {
  const mayAct = useMay("operator");
  const queries = useQueryClient();
  const [edited, setEdited] = useState<Terminal>();
  const refresh = () => queries.invalidateQueries({ queryKey: ["terminals", partner] });
  const pages = useInfiniteQuery({
    queryKey: ["terminals", partner],
    queryFn: ({ pageParam, signal }) => api.listTerminals(partner, { limit: rows, after: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  const columns: readonly ListColumn<Terminal>[] = [
    {
      name: "Terminal",
      show: ({ tid }) => <Link href={`/notifications?${new URLSearchParams({ partner, tid })}`}>{tid}</Link>,
      look: "mono",
      sortBy: ({ tid }) => tid,
    },
    { name: "Merchant", show: ({ mid }) => mid, look: "mono", sortBy: ({ mid }) => mid },
    { name: "Name", show: (one) => one.merchantName, look: "wraps", sortBy: (one) => one.merchantName },
    { name: "Address", show: (one) => one.merchantAddress, look: "wraps", from: "desktop" },
    { name: "Device", show: ({ deviceId }) => deviceId, look: "wraps", from: "desktop" },
    { name: "Acquirer", show: ({ acquirer }) => acquirer || "of the settings", from: "tablet" },
    {
      name: "Actions",
      show: (one) =>
        mayAct && (
          <Group gap="xs" justify="end" wrap="nowrap">
            <Button size="xs" variant="default" onClick={() => setEdited(one)}>
              Change
            </Button>
            <Confirm
              label="Release"
              title={`Release the terminal ${one.tid}?`}
              text="It belongs to no partner then. It is refused while money is open on it."
              onConfirm={() => api.removeTerminal(partner, one.tid).then(refresh)}
            />
          </Group>
        ),
      look: "actions",
    },
  ];
  return (
    <Stack gap="md">
      {mayAct && (
        <TerminalForm
          key={edited?.tid ?? ""}
          partner={partner}
          initial={edited}
          onSaved={async () => {
            setEdited(undefined);
            await refresh();
          }}
          onCancel={() => setEdited(undefined)}
        />
      )}
      <List
        of={pages}
        items={pages.data?.pages.flatMap((page) => page.items) ?? []}
        columns={columns}
        keyOf={({ tid }) => tid}
        empty={
          <Empty title="No terminal yet">
            Where its terminals are open, one appears here with its first command; otherwise register it.
          </Empty>
        }
      />
    </Stack>
  );
}

function TerminalForm({
  partner,
  initial,
  onSaved,
  onCancel,
}: {
  readonly partner: string;
  readonly initial: Terminal | undefined;
  onSaved(): Promise<unknown>;
  onCancel(): void;
}) {
  const [values, setValues] = useState<Terminal>(initial ?? nothing);
  const save = useMutation({
    mutationFn: async ({ tid, ...body }: Terminal) => await api.putTerminal(partner, tid.trim(), body),
    onSuccess: () => {
      setValues(nothing);
      return onSaved();
    },
  });
  const problems = save.error instanceof CallError ? save.error.fields : {};
  return (
    <Panel title={initial === undefined ? "Register a terminal" : `Change the terminal ${initial.tid}`}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate(values);
        }}
      >
        <Group gap="sm" align="start">
          {fields.map(([name, label, description]) => (
            <TextInput
              key={name}
              size="xs"
              w={200}
              label={label}
              required={required.includes(name)}
              readOnly={name === "tid" && initial !== undefined}
              {...(description !== "" && { description })}
              inputWrapperOrder={["label", "input", "description", "error"]}
              value={values[name]}
              onChange={({ currentTarget: { value } }) => setValues((others) => ({ ...others, [name]: value }))}
              error={problems[name]}
            />
          ))}
        </Group>
        <Group gap="xs" mt="sm">
          <Button size="xs" type="submit" loading={save.isPending}>
            {initial === undefined ? "Register" : "Save"}
          </Button>
          {initial !== undefined && (
            <Button size="xs" variant="default" onClick={onCancel}>
              Cancel
            </Button>
          )}
        </Group>
        {save.isError && Object.keys(problems).length === 0 && <Failure error={save.error} />}
        {save.isSuccess && (
          <Alert color="green" variant="light" p="xs" mt="sm" role="status">
            {save.data.tid} is registered.
          </Alert>
        )}
      </form>
    </Panel>
  );
}
