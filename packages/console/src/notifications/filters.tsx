import { ActionIcon, Button, Group, Menu, SegmentedControl, Select, TextInput } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { notifiedCommands } from "@paybell/contract";
import { IconBookmark, IconFilter, IconTrash, IconX } from "@tabler/icons-react";
import { useState } from "react";
import { Link, useSearchParams } from "wouter";
import { useFilters } from "../display/page.tsx";
import { shownCommand } from "../display/state.tsx";
import { localInput, momentOfInput } from "../display/time.tsx";
import { PartnerFilter } from "../partners/partner.tsx";
import { useSession } from "../session/session.ts";
import { textFilters } from "./search.ts";
import { reasons } from "./words.ts";

const between = "between";
const spanNames = [
  { value: "", label: "Any time" },
  { value: "1h", label: "Last hour" },
  { value: "24h", label: "Last 24 hours" },
  { value: "7d", label: "Last 7 days" },
  { value: between, label: "Between…" },
];

/** Filters of the list. They are in the URL, so that a view can be shared. `problems`: by the API, of each field. */
export function Filters({ problems }: { readonly problems: Readonly<Record<string, string>> }) {
  const { session } = useSession();
  const { params, set, clear } = useFilters();
  const given = textFilters.filter(([name]) => params.has(name));
  const [showsMore, setShowsMore] = useState(given.length > 0);
  const hasBounds = params.has("from") || params.has("to");
  const [showsBounds, setShowsBounds] = useState(hasBounds);
  const choice = (name: string, label: string, data: { value: string; label: string }[], w: number) => (
    <Select
      w={w}
      aria-label={label}
      placeholder={`Any ${label.toLowerCase()}`}
      clearable
      data={data}
      value={params.get(name)}
      onChange={(value) => set({ [name]: value })}
      error={problems[name]}
    />
  );
  return (
    <>
      <Group gap="xs" align="start">
        <SegmentedControl
          aria-label="State"
          value={params.get("state") ?? ""}
          // Delivered ones have no reason.
          onChange={(state) => set({ state, ...(state === "accepted" && { reason: null }) })}
          data={[
            { value: "", label: "All" },
            { value: "pending", label: "Pending" },
            { value: "parked", label: "Parked" },
            { value: "accepted", label: "Delivered" },
          ]}
        />
        {session.kind === "operator" && <PartnerFilter />}
        {choice(
          "command",
          "Command",
          notifiedCommands.map((value) => ({ value, label: shownCommand(value) })),
          120,
        )}
        {choice(
          "result",
          "Result",
          [
            { value: "approved", label: "Approved" },
            { value: "declined", label: "Declined" },
          ],
          105,
        )}
        {params.get("state") !== "accepted" &&
          choice(
            "reason",
            "Reason",
            Object.entries(reasons).map(([value, label]) => ({ value, label })),
            150,
          )}
        <Select
          w={120}
          aria-label="Time"
          data={spanNames}
          value={showsBounds || hasBounds ? between : (params.get("span") ?? "")}
          onChange={(value) => {
            setShowsBounds(value === between);
            set(value === between ? { span: null } : { span: value, from: null, to: null });
          }}
          allowDeselect={false}
        />
        {(showsBounds || hasBounds) &&
          (["from", "to"] as const).map((name) => (
            <TextInput
              key={name}
              type="datetime-local"
              aria-label={name === "from" ? "Created from" : "Created before"}
              value={localInput(params.get(name))}
              onChange={({ currentTarget: { value } }) => set({ [name]: momentOfInput(value) })}
              error={problems[name]}
            />
          ))}
        <Button
          variant="default"
          leftSection={<IconFilter size={14} aria-hidden />}
          aria-expanded={showsMore}
          onClick={() => setShowsMore(!showsMore)}
        >
          More filters
        </Button>
        {params.size > 0 && (
          <Button
            variant="subtle"
            color="gray"
            leftSection={<IconX size={14} aria-hidden />}
            onClick={() => {
              setShowsBounds(false);
              clear();
            }}
          >
            Clear
          </Button>
        )}
      </Group>
      {showsMore && (
        <form
          key={params.toString()}
          onSubmit={(event) => {
            event.preventDefault();
            const form = new FormData(event.currentTarget);
            const text = (name: string) => String(form.get(`filter-${name}`) ?? "").trim();
            set(Object.fromEntries(textFilters.map(([name]) => [name, text(name)])));
          }}
        >
          <Group gap="xs" align="start">
            {textFilters.map(([name, label]) => (
              <TextInput
                key={name}
                // A form whose field is named as one of its methods, such as contains, loses the method.
                name={`filter-${name}`}
                label={label}
                w={150}
                defaultValue={params.get(name) ?? ""}
                autoComplete="off"
                error={problems[name]}
              />
            ))}
            <Button type="submit" mt={20}>
              Apply
            </Button>
          </Group>
        </form>
      )}
    </>
  );
}

interface View {
  readonly name: string;
  readonly query: string;
}

/** Views that every user has. */
const builtIn: readonly View[] = [
  { name: "Waiting", query: "state=pending" },
  { name: "Parked in the last 24 hours", query: "state=parked&span=24h" },
  { name: "Declined in the last 24 hours", query: "result=declined&span=24h" },
];

/** Filters under a name, kept by this browser. Their addresses can be sent to others. */
export function SavedViews() {
  const [params] = useSearchParams();
  const [views, setViews] = useLocalStorage<readonly View[]>({ key: "paybell-views", defaultValue: [] });
  const [name, setName] = useState("");
  const query = params.toString();
  const save = () => {
    setViews((others) => [...others.filter((view) => view.name !== name.trim()), { name: name.trim(), query }]);
    setName("");
  };
  return (
    <Menu position="bottom-end" width={280} closeOnItemClick>
      <Menu.Target>
        <Button variant="default" leftSection={<IconBookmark size={14} aria-hidden />}>
          Views
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {[...builtIn, ...views].map((view) => (
          <Group key={view.name} gap={0} wrap="nowrap">
            <Menu.Item component={Link} href={`/notifications?${view.query}`}>
              {view.name}
            </Menu.Item>
            {!builtIn.includes(view) && (
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={`Forget ${view.name}`}
                onClick={() => setViews((others) => others.filter((other) => other !== view))}
              >
                <IconTrash size={14} />
              </ActionIcon>
            )}
          </Group>
        ))}
        <Menu.Divider />
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (name.trim() !== "") save();
          }}
        >
          <Group gap="xs" p="xs" wrap="nowrap">
            <TextInput
              aria-label="Name of this view"
              placeholder={query === "" ? "Set a filter first" : "Name of this view"}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              disabled={query === ""}
              maxLength={60}
            />
            <Button type="submit" disabled={query === "" || name.trim() === ""}>
              Save
            </Button>
          </Group>
        </form>
      </Menu.Dropdown>
    </Menu>
  );
}
