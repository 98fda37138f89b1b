import { Select } from "@mantine/core";
import { ofSettings, useAcquirers } from "./use-acquirers.ts";

/** Chooses one of several acquirers. Nothing is shown while there is only that of the settings. */
export function AcquirerSelect({
  value,
  onChange,
}: {
  readonly value: string | null;
  readonly onChange: (name: string | null) => void;
}) {
  const registered = (useAcquirers().data?.items ?? []).map(({ name }) => name);
  if (registered.length === 0 && value === null) return null;
  // One that was removed still has transactions.
  const names = new Set([...registered, ...(value === null || value === ofSettings ? [] : [value])]);
  return (
    <Select
      size="xs"
      w={190}
      aria-label="Acquirer"
      placeholder="Every acquirer"
      searchable
      clearable
      nothingFoundMessage="No acquirer has this name"
      data={[{ value: ofSettings, label: "That of the settings" }, ...names]}
      value={value}
      onChange={onChange}
    />
  );
}
