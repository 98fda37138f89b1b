import { Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

/** Says what would be here, and how to make it appear. In a panel it takes no more room than a row. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <Stack className="empty">
      <Text fw={600}>{title}</Text>
      {children !== undefined && (
        <Text c="dimmed" maw={460} component="div">
          {children}
        </Text>
      )}
    </Stack>
  );
}
