import { Select } from "@mantine/core";
import { usePartners } from "./use-partners.ts";

export function PartnerSelect({
  value,
  onChange,
}: {
  readonly value: string | null;
  readonly onChange: (id: string | null) => void;
}) {
  const partners = usePartners().data ?? [];
  return (
    <Select
      size="xs"
      w={190}
      aria-label="Partner"
      placeholder="Every partner"
      searchable
      clearable
      limit={100}
      nothingFoundMessage="No partner has this name"
      data={partners.map(({ id, settings }) => ({ value: id, label: settings.name }))}
      value={value}
      onChange={onChange}
    />
  );
}
