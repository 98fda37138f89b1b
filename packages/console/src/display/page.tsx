import { Group, Stack, Text, Title } from "@mantine/core";
import { Fragment, type ReactNode, useEffect } from "react";
import { Link } from "wouter";

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

/** A part of a page, under its own heading. */
export function Panel({
  title,
  actions,
  children,
  flush = false,
}: {
  readonly title: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  /** Tables reach its edges. */
  readonly flush?: boolean;
}) {
  return (
    <section className="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {actions}
      </header>
      {flush ? children : <div className="inside">{children}</div>}
    </section>
  );
}

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

/** Names with their values. What has no value is left out. */
export function Fields({ of }: { readonly of: Readonly<Record<string, ReactNode>> }) {
  return (
    <dl className="fields">
      {Object.entries(of)
        .filter(([, value]) => value !== null && value !== undefined && value !== false && value !== "")
        .map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
    </dl>
  );
}

/** One number and its name; with `to` it leads to what it counts. */
export function Figure({
  label,
  value,
  note,
  tone,
  to,
}: {
  readonly label: string;
  readonly value: string;
  readonly note?: string | undefined;
  readonly tone?: "wait" | "bad" | undefined;
  readonly to?: string;
}) {
  const inside = (
    <>
      <div className="label">{label}</div>
      <div className="value">{value}</div>
      <div className="label">{note ?? "\u00a0"}</div>
    </>
  );
  if (to === undefined)
    return (
      <div className="figure" data-tone={tone}>
        {inside}
      </div>
    );
  return (
    <Link href={to} className="figure" data-tone={tone}>
      {inside}
    </Link>
  );
}
