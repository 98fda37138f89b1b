import { Button, Group, SegmentedControl, Select, TextInput } from "@mantine/core";
import { notifiedCommands } from "@paybell/contract";
import { IconFilter, IconX } from "@tabler/icons-react";
import { useState } from "react";
import { useSearchParams } from "wouter";
import { PartnerSelect } from "../partners/partner-select.tsx";
import { useSession } from "../session/session.ts";
import { textFilters } from "./search-of.ts";

const spanNames = [
  { value: "", label: "Any time" },
  { value: "1h", label: "Last hour" },
  { value: "24h", label: "Last 24 hours" },
  { value: "7d", label: "Last 7 days" },
];

/** Filters of the list. They are in the URL, so that a view can be shared. */
export function Filters() {
  const { session } = useSession();
  const [params, setParams] = useSearchParams();
  const given = textFilters.filter(([name]) => params.has(name));
  const [showsMore, setShowsMore] = useState(given.length > 0);
  const set = (name: string, value: string | null) =>
    setParams((before) => {
      const next = new URLSearchParams(before);
      if (value === null || value === "") next.delete(name);
      else next.set(name, value);
      return next;
    });
  return (
    <>
      <Group gap="xs">
        <SegmentedControl
          size="xs"
          aria-label="State"
          value={params.get("state") ?? ""}
          onChange={(value) => set("state", value)}
          data={[
            { value: "", label: "All" },
            { value: "pending", label: "Pending" },
            { value: "parked", label: "Parked" },
            { value: "accepted", label: "Delivered" },
          ]}
        />
        {session.kind === "operator" && (
          <PartnerSelect value={params.get("partner")} onChange={(value) => set("partner", value)} />
        )}
        <Select
          size="xs"
          w={150}
          aria-label="Command"
          placeholder="Any command"
          clearable
          data={notifiedCommands.map((value) => ({ value, label: value.replace("_", "-") }))}
          value={params.get("command")}
          onChange={(value) => set("command", value)}
        />
        <Select
          size="xs"
          w={140}
          aria-label="Time"
          data={spanNames}
          value={params.get("span") ?? ""}
          onChange={(value) => set("span", value)}
          allowDeselect={false}
        />
        <Button
          size="xs"
          variant="default"
          leftSection={<IconFilter size={14} aria-hidden />}
          aria-expanded={showsMore}
          onClick={() => setShowsMore(!showsMore)}
        >
          More filters
        </Button>
        {params.size > 0 && (
          <Button
            size="xs"
            variant="subtle"
            color="gray"
            leftSection={<IconX size={14} aria-hidden />}
            onClick={() => setParams({})}
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
            setParams((before) => {
              const next = new URLSearchParams(before);
              for (const [name] of textFilters) {
                const value = String(form.get(name) ?? "").trim();
                if (value === "") next.delete(name);
                else next.set(name, value);
              }
              return next;
            });
          }}
        >
          <Group gap="xs" align="end">
            {textFilters.map(([name, label]) => (
              <TextInput
                key={name}
                name={name}
                label={label}
                size="xs"
                w={150}
                defaultValue={params.get(name) ?? ""}
                autoComplete="off"
              />
            ))}
            <Button type="submit" size="xs">
              Apply
            </Button>
          </Group>
        </form>
      )}
    </>
  );
}
