import { Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

/** Says what would be here, and how to make it appear. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <Stack align="center" gap={4} py={28} px="md">
      <Text fw={600}>{title}</Text>
      <Text c="dimmed" ta="center" maw={460} component="div">
        {children}
      </Text>
    </Stack>
  );
}
