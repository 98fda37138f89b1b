import { Group, Stack, Tabs, Text, Title } from "@mantine/core";
import { Fragment, type ReactNode, useEffect } from "react";
import { Link, useSearchParams } from "wouter";

/** One page: its title is in the browser's tab, too. Of one thing, `headline` answers what the page is opened for. */
export function Page({
  title,
  about,
  actions,
  headline,
  children,
}: {
  readonly title: string;
  /** What tells the thing apart. */
  readonly about?: string;
  readonly actions?: ReactNode;
  readonly headline?: ReactNode;
  readonly children: ReactNode;
}) {
  useEffect(() => {
    document.title = [title, about, "Paybell"].filter(Boolean).join(" · ");
  }, [title, about]);
  return (
    <Stack gap="md">
      <Group justify="space-between" gap="xs">
        <Group gap="sm" align="baseline">
          <Title order={1} className="wraps">
            {title}
          </Title>
          {about && <Text className="wraps">{about}</Text>}
        </Group>
        {actions !== undefined && <Group gap="xs">{actions}</Group>}
      </Group>
      {headline !== undefined && (
        <Text fz={15} mt={-10} className="headline" component="div" role="status" aria-live="polite">
          {headline}
        </Text>
      )}
      {children}
    </Stack>
  );
}

/** The filters of a page are in its address. An empty value is taken out of it. */
export function useFilters() {
  const [params, setParams] = useSearchParams();
  return {
    params,
    set: (changes: Readonly<Record<string, string | null>>) =>
      setParams((before) => {
        const next = new URLSearchParams(before);
        for (const [name, value] of Object.entries(changes)) {
          if (value) next.set(name, value);
          else next.delete(name);
        }
        return next;
      }),
    clear: () => setParams({}),
  };
}

/** The parts of a page behind tabs, by their names. The one that is open is in the address; at first it is the first. */
export function PageTabs({ tabs }: { readonly tabs: Readonly<Record<string, () => ReactNode>> }) {
  const [params, setParams] = useSearchParams();
  const parts = Object.entries(tabs).map(([name, show]) => ({ name, id: idOf(name), show }));
  const open = parts.find(({ id }) => id === params.get("tab")) ?? parts[0];
  if (open === undefined) return null;
  return (
    <Tabs value={open.id} onChange={(id) => setParams(id === null || id === parts[0]?.id ? {} : { tab: id })}>
      <Tabs.List mb="md">
        {parts.map(({ id, name }) => (
          <Tabs.Tab key={id} value={id}>
            {name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      <Tabs.Panel value={open.id}>{open.show()}</Tabs.Panel>
    </Tabs>
  );
}

function idOf(name: string): string {
  return name.toLowerCase().replaceAll(" ", "-");
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
