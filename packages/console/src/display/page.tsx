import { Group, Stack, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";

/** One page: its title is in the browser's tab, too. */
export function Page({
  title,
  actions,
  children,
}: {
  readonly title: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · Paybell`;
  }, [title]);
  return (
    <Stack gap="md">
      <Group justify="space-between" gap="xs">
        <Title order={1}>{title}</Title>
        {actions !== undefined && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  );
}
