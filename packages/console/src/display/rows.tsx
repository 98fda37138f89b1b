import { Center, Loader } from "@mantine/core";
import type { KeyboardEvent, ReactNode } from "react";
import { useLocation } from "wouter";

/** A row that opens a page: by a click, by Enter, and by j and k from row to row. */
export function OpeningRow({ to, children }: { readonly to: string; readonly children: ReactNode }) {
  const [, navigate] = useLocation();
  return (
    <tr
      data-opens
      tabIndex={-1}
      onClick={(event) => {
        if ((event.target as HTMLElement).closest("a, button, input") === null) navigate(to);
      }}
      onKeyDown={(event: KeyboardEvent) => {
        if (event.key === "Enter" && event.target === event.currentTarget) navigate(to);
      }}
    >
      {children}
    </tr>
  );
}

/** Puts the focus on the next row that opens something, or the one before. */
export function moveRow(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLTableRowElement>("tr[data-opens]")];
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  rows[Math.min(Math.max(at + step, 0), rows.length - 1)]?.focus();
}

export function Loading() {
  return (
    <Center py={48}>
      <Loader size="sm" role="status" aria-label="Loading" />
    </Center>
  );
}
