import { Select } from "@mantine/core";
import { usePartners } from "./use-partners.ts";

export function PartnerSelect({
  value,
  onChange,
  label,
}: {
  readonly value: string | null;
  readonly onChange: (id: string | null) => void;
  /** Left out: it is read out, and not seen. */
  readonly label?: string;
}) {
  const partners = usePartners().data ?? [];
  return (
    <Select
      size="xs"
      w={160}
      {...(label === undefined ? { "aria-label": "Partner" } : { label })}
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
