import { Button, Group, Stack, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { api, FieldError } from "../api/call.ts";
import type { Terminal } from "../api/operations.ts";
import { usePages } from "../api/query.ts";
import { Confirm } from "../display/confirm.tsx";
import { Form, useForm } from "../display/form.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Panel } from "../display/page.tsx";
import { useMay } from "../session/session.ts";

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
  const [saved, setSaved] = useState<Terminal>();
  const found = usePages(["terminals", partner], (page, options) => api.listTerminals(partner, page, options));
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
            <Button variant="default" onClick={() => setEdited(one)}>
              Change
            </Button>
            <Confirm
              label="Release"
              title={`Release the terminal ${one.tid}?`}
              text="It belongs to no partner then. It is refused while money is open on it."
              onConfirm={() => api.removeTerminal(partner, one.tid)}
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
          saved={saved}
          onSaved={async (terminal) => {
            setEdited(undefined);
            setSaved(terminal);
            await queries.invalidateQueries({ queryKey: ["terminals", partner] });
          }}
          onCancel={() => setEdited(undefined)}
        />
      )}
      <List
        of={found}
        columns={columns}
        keyOf={({ tid }) => tid}
        empty={[
          "No terminal yet",
          "Where its terminals are open, one appears here with its first command; otherwise register it.",
        ]}
      />
    </Stack>
  );
}

function TerminalForm({
  partner,
  initial,
  saved,
  onSaved,
  onCancel,
}: {
  readonly partner: string;
  readonly initial: Terminal | undefined;
  /** The one that was saved last. */
  readonly saved: Terminal | undefined;
  onSaved(terminal: Terminal): Promise<unknown>;
  onCancel(): void;
}) {
  const form = useForm<Record<keyof Terminal, string>, Terminal>(
    initial ?? nothing,
    async ({ tid, ...typed }) => {
      // An address without a tid is that of another route.
      if (tid.trim() === "") throw new FieldError({ tid: "tid is missing." });
      if (initial === undefined) return await api.putTerminal(partner, tid.trim(), typed);
      // What was not changed here stays as it is now, so that two people do not undo each other's changes.
      const { items } = await api.findTerminals({ q: tid });
      const standing = items.find((one) => one.partnerId === partner && one.tid === tid) ?? initial;
      const names = Object.keys(typed) as (keyof typeof typed)[];
      const kept = names.filter((name) => typed[name] === initial[name]).map((name) => [name, standing[name]]);
      return await api.putTerminal(partner, tid, { ...typed, ...Object.fromEntries(kept) });
    },
    (terminal, { set }) => {
      set(nothing);
      return onSaved(terminal);
    },
  );
  return (
    <Panel title={initial === undefined ? "Register a terminal" : `Change the terminal ${initial.tid}`}>
      <Form
        of={form}
        submit={initial === undefined ? "Register" : "Save"}
        actions={
          initial !== undefined && (
            <Button variant="default" onClick={onCancel}>
              Cancel
            </Button>
          )
        }
        done={saved !== undefined && initial === undefined && form.sending.error === null && `${saved.tid} is saved.`}
      >
        <Group gap="sm" align="start">
          {fields.map(([name, label, description]) => (
            <TextInput
              key={name}
              w={200}
              label={label}
              required={required.includes(name)}
              readOnly={name === "tid" && initial !== undefined}
              {...(description !== "" && { description })}
              inputWrapperOrder={["label", "input", "description", "error"]}
              {...form.text(name)}
            />
          ))}
        </Group>
      </Form>
    </Panel>
  );
}
