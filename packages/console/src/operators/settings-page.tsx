import { Checkbox, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Fragment, useState } from "react";
import { api } from "../api/call.ts";
import { List, type ListColumn } from "../display/list.tsx";
import { Page } from "../display/page.tsx";

type Setting = Awaited<ReturnType<typeof api.listSettings>>["items"][number];

const columns: readonly ListColumn<Setting>[] = [
  { name: "Setting", show: ({ name }) => <BreakingName name={name} />, look: "mono" },
  {
    name: "Value",
    show: ({ value, unit }) => (value === null ? "–" : [value, unit].filter(Boolean).join(" ")),
    look: "wraps",
  },
  { name: "Source", show: ({ source }) => (source === "environment" ? <strong>set</strong> : "default") },
  { name: "Default", show: (one) => one.default ?? "–", look: "wraps", from: "tablet" },
  {
    name: "Meaning",
    show: ({ meaning }) => (
      <Text size="xs" c="dimmed">
        <WithCode text={meaning} />
      </Text>
    ),
    from: "tablet",
  },
];

/** A long name breaks after an underscore. */
function BreakingName({ name }: { readonly name: string }) {
  return name.split(/(?<=_)/).map((part, nth) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a name never change places
    <Fragment key={nth}>
      {part}
      <wbr />
    </Fragment>
  ));
}

/** Text between backticks is code. */
function WithCode({ text }: { readonly text: string }) {
  return text.split("`").map((part, nth) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text never change places
    <Fragment key={nth}>{nth % 2 === 0 ? part : <span className="mono">{part}</span>}</Fragment>
  ));
}

/** The settings of the instance that answered: they are changed where it is started. */
export function SettingsPage() {
  const found = useQuery({ queryKey: ["settings"], queryFn: () => api.listSettings() });
  const [text, setText] = useState("");
  const [onlyChanged, setOnlyChanged] = useState(false);
  const wanted = text.trim().toLowerCase();
  const items = (found.data?.items ?? []).filter(
    ({ name, meaning, source }) =>
      (!onlyChanged || source === "environment") && `${name} ${meaning}`.toLowerCase().includes(wanted),
  );
  return (
    <Page
      title="Settings"
      actions={
        <>
          <Checkbox
            size="xs"
            label="Only what was set"
            checked={onlyChanged}
            onChange={(event) => setOnlyChanged(event.currentTarget.checked)}
          />
          <TextInput
            size="xs"
            w={220}
            placeholder="Name or meaning"
            aria-label="Filter settings"
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
          />
        </>
      }
    >
      <List of={found} items={items} columns={columns} keyOf={({ name }) => name} empty="No setting matches" />
    </Page>
  );
}
