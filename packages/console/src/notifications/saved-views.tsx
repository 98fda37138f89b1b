import { ActionIcon, Button, Group, Menu, TextInput } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { IconBookmark, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { Link, useSearchParams } from "wouter";

interface View {
  readonly name: string;
  readonly query: string;
}

/** Views that every user has. */
const standing: readonly View[] = [
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
        <Button size="xs" variant="default" leftSection={<IconBookmark size={14} aria-hidden />}>
          Views
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {[...standing, ...views].map((view) => (
          <Group key={view.name} gap={0} wrap="nowrap">
            <Menu.Item component={Link} href={`/notifications?${view.query}`}>
              {view.name}
            </Menu.Item>
            {!standing.includes(view) && (
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
              size="xs"
              aria-label="Name of this view"
              placeholder={query === "" ? "Set a filter first" : "Name of this view"}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              disabled={query === ""}
              maxLength={60}
            />
            <Button size="xs" type="submit" disabled={query === "" || name.trim() === ""}>
              Save
            </Button>
          </Group>
        </form>
      </Menu.Dropdown>
    </Menu>
  );
}
