import { Accordion, Badge, Checkbox, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Fragment, useState } from "react";
import { useSearchParams } from "wouter";
import { api } from "../api/call.ts";
import type { ListColumn } from "../display/list.tsx";
import { Table } from "../display/list.tsx";
import { Empty, Loaded } from "../display/loaded.tsx";
import { Page } from "../display/page.tsx";

type Setting = Awaited<ReturnType<typeof api.listSettings>>["items"][number];

const columns: readonly ListColumn<Setting>[] = [
  { name: "Setting", show: ({ name }) => <BreakingName name={name} />, look: "mono" },
  {
    name: "Value",
    show: ({ value, unit, source }) => {
      const text = value === null ? "–" : [value, unit].filter(Boolean).join(" ");
      return source === "environment" ? <strong>{text}</strong> : text;
    },
    look: "wraps",
  },
  {
    name: "Default",
    show: ({ source, default: standard }) => (source === "default" ? "in use" : (standard ?? "–")),
    look: "wraps",
    from: "tablet",
  },
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

/** The settings of the instance that answered, by topic: they are changed where it is started. */
export function SettingsPage() {
  const found = useQuery({ queryKey: ["settings"], queryFn: () => api.listSettings() });
  const [params, setParams] = useSearchParams();
  const text = params.get("q") ?? "";
  const [onlyChanged, setOnlyChanged] = useState(false);
  const [opened, setOpened] = useState<string[]>([]);
  const wanted = text.trim().toLowerCase();
  const items = (found.data?.items ?? []).filter(
    ({ name, meaning, source }) =>
      (!onlyChanged || source === "environment") && `${name} ${meaning}`.toLowerCase().includes(wanted),
  );
  const groups = Map.groupBy(items, ({ section }) => section);
  const isNarrowed = onlyChanged || wanted !== "";
  return (
    <Page
      title="Settings"
      actions={
        <>
          <Checkbox
            label="Only what was set"
            checked={onlyChanged}
            onChange={(event) => setOnlyChanged(event.currentTarget.checked)}
          />
          <TextInput
            w={220}
            placeholder="Name or meaning"
            aria-label="Filter settings"
            value={text}
            onChange={({ currentTarget: { value } }) => setParams(value === "" ? {} : { q: value }, { replace: true })}
          />
        </>
      }
    >
      <Loaded of={found}>{() => items.length === 0 && <Empty title="No setting matches" />}</Loaded>
      <Accordion
        multiple
        variant="contained"
        value={isNarrowed ? [...groups.keys()] : opened}
        onChange={setOpened}
        order={2}
        keepMounted={false}
      >
        {[...groups].map(([topic, those]) => {
          const set = those.filter(({ source }) => source === "environment").length;
          return (
            <Accordion.Item key={topic} value={topic}>
              <Accordion.Control>
                {topic}{" "}
                <Text span size="xs" c="dimmed">
                  {those.length}
                </Text>{" "}
                {set > 0 && (
                  <Badge size="sm" variant="light" tt="none">
                    {set} set
                  </Badge>
                )}
              </Accordion.Control>
              <Accordion.Panel>
                <Table items={those} columns={columns} keyOf={({ name }) => name} />
              </Accordion.Panel>
            </Accordion.Item>
          );
        })}
      </Accordion>
    </Page>
  );
}
