import { Button, Group, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import { operations } from "../api/operations.ts";
import { usePages } from "../api/query.ts";
import { FormProblem, hasFieldProblems, problemOf } from "../display/form.tsx";
import { List, type ListColumn } from "../display/list.tsx";
import { Page, useFilters } from "../display/page.tsx";
import { localInput, momentOfInput, Time } from "../display/time.tsx";
import { usePartners } from "../partners/partner.tsx";
import { useMay } from "../session/session.ts";
import { pageOf } from "../shell/pages.ts";

const filters = [
  ["actor", "Who", 140],
  ["action", "Did", 160],
  ["subject", "On what (id)", 220],
  ["from", "From", 200],
  ["to", "Before", 200],
] as const;
/** What the audit may have recorded, for the list under the field: any other text is looked for, too. */
const actions = [
  ...Object.entries(operations).flatMap(([name, [, , , audited]]) => (audited === undefined ? [] : [name])),
  // The trail of sign-ins.
  ...["signIn", "signOut", "refuseSignIn"],
].map(actionInWords);
const isTime = (name: string) => name === "from" || name === "to";

/** The audit, the newest first: who did what to whom, by name. */
export function AuditPage() {
  const { params, set } = useFilters();
  const search = Object.fromEntries(filters.map(([name]) => [name, params.get(name) ?? undefined]));
  const [opened, setOpened] = useState<number>();
  const names = useNames();
  const found = usePages(["audit", search], (page, options) => api.searchAudit({ ...search, ...page }, options));
  const columns: readonly ListColumn<AuditItem>[] = [
    { name: "When", show: ({ at }) => <Time at={at} />, look: "nowrap" },
    {
      name: "Who",
      show: (item) => (
        <span title={item.actor}>
          {actorInWords(item, names)}{" "}
          <span className="state" data-tone="quiet">
            {item.role}
          </span>
        </span>
      ),
      look: "wraps",
    },
    { name: "Did", show: ({ action }) => actionInWords(action), look: "wraps" },
    { name: "On", show: (item) => <SubjectOf item={item} names={names} />, look: "wraps", from: "tablet" },
    { name: "From", show: ({ address }) => address, look: "mono", from: "desktop" },
    {
      name: "Details",
      show: ({ seq }) => (
        <Button
          size="compact-xs"
          variant="subtle"
          aria-expanded={opened === seq}
          onClick={() => setOpened(opened === seq ? undefined : seq)}
        >
          {opened === seq ? "Close" : "Details"}
        </Button>
      ),
      look: "actions",
    },
  ];
  return (
    <Page title="Audit">
      <form
        key={params.toString()}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          const typed = filters.map(([name]) => [name, String(form.get(name) ?? "").trim()] as const);
          const meant = (name: string, text: string) =>
            isTime(name) ? momentOfInput(text) : name === "action" ? actionOfWords(text) : text;
          set(Object.fromEntries(typed.map(([name, text]) => [name, meant(name, text)])));
        }}
      >
        <Group gap="xs" align="start">
          {filters.map(([name, label, width]) => (
            <TextInput
              key={name}
              name={name}
              label={label}
              {...(isTime(name) ? { type: "datetime-local" } : { w: width })}
              {...(name === "action" && { list: "actions", autoComplete: "off" })}
              defaultValue={shownFilter(name, params.get(name))}
              error={problemOf(found.error, name)}
            />
          ))}
          <datalist id="actions">
            {actions.map((words) => (
              <option key={words} value={words} />
            ))}
          </datalist>
          <Button type="submit" mt={20}>
            Apply
          </Button>
        </Group>
      </form>
      {hasFieldProblems(found.error) ? (
        <FormProblem error={found.error} names={filters.map(([name]) => name)} />
      ) : (
        <List
          of={found}
          columns={columns}
          keyOf={({ seq }) => seq}
          below={(item) => opened === item.seq && <Details item={item} />}
          empty={
            params.size > 0
              ? ["Nothing matches", "No entry has all of this."]
              : [
                  "Nothing was done yet",
                  "Every action of an operator or partner is recorded here, and every look at an IPN.",
                ]
          }
        />
      )}
    </Page>
  );
}

/** The change comes first; everything that was recorded is one click further. */
function Details({ item }: { readonly item: AuditItem }) {
  const changes = changesOf(item);
  return (
    <>
      {changes.length > 0 && (
        <ul className="plain">
          {changes.map((line) => (
            <li key={line} className="wraps">
              {line}
            </li>
          ))}
        </ul>
      )}
      <details>
        <summary>As recorded</summary>
        <pre className="code">
          {JSON.stringify({ subject: item.subject, before: item.before, after: item.after, hash: item.hash }, null, 2)}
        </pre>
      </details>
    </>
  );
}

function useNames(): Names {
  const partners = usePartners().data;
  const operators = useQuery({
    queryKey: ["operators"],
    queryFn: () => api.listOperators(),
    enabled: useMay("admin"),
  }).data?.items;
  return {
    partner: (id) => partners?.find((one) => one.id === id)?.settings.name,
    operator: (id) => operators?.find((one) => one.id === id)?.name,
  };
}

type AuditItem = Awaited<ReturnType<typeof api.searchAudit>>["items"][number];

/** The names of things by their ids. */
export interface Names {
  partner(id: string): string | undefined;
  operator(id: string): string | undefined;
}

/** An operationId as words, such as "rotate key". */
function actionInWords(action: string): string {
  return action.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** The reverse: an operationId stays as it is. */
function actionOfWords(words: string): string {
  const [, begin = "", name = ""] = /^(begin )?(.*)$/i.exec(words) ?? [];
  return begin.toLowerCase() + name.replace(/ (\w)/g, (_, letter: string) => letter.toUpperCase());
}

function shownFilter(name: string, value: string | null): string {
  if (value === null) return "";
  return isTime(name) ? localInput(value) : name === "action" ? actionInWords(value) : value;
}

/** The actor by name: a partner's key has its partner's id. */
function actorInWords({ actor }: AuditItem, names: Names): string {
  const id = /^partner (\S+)$/.exec(actor)?.[1];
  return (id !== undefined && names.partner(id)) || actor;
}

/** The subject of an entry by name, with a link to its page. */
function SubjectOf({ item, names }: { readonly item: AuditItem; readonly names: Names }): ReactNode {
  const { action, subject } = item;
  const [id = "", ...rest] = subject.split("/");
  if (id === "") return null;
  const partner = names.partner(id);
  if (partner !== undefined) {
    const isTerminal = /terminal/i.test(action);
    const page = isTerminal ? `/partners/${id}?tab=terminals` : `/partners/${id}`;
    const more = rest.length === 0 ? "" : isTerminal ? `terminal ${rest.join("/")}` : shortened(rest.join("/"));
    return (
      <>
        <div>
          <Link href={page}>{partner}</Link>
        </div>
        {more !== "" && <div>{more}</div>}
      </>
    );
  }
  const operator = names.operator(id);
  if (operator !== undefined) return <Link href="/operators">operator {operator}</Link>;
  const page = pageFor(action, id);
  const text = <span title={subject}>{shortened(subject)}</span>;
  return page === undefined ? (
    text
  ) : (
    <Link href={page.to}>
      {page.what} {text}
    </Link>
  );
}

function pageFor(action: string, id: string): { to: string; what: string } | undefined {
  if (/notification$|proveDelivery/i.test(action)) return { to: `/notifications/${id}`, what: "notification" };
  if (/Reversal$/.test(action)) return { to: pageOf({ id, command: "SALE" }), what: "transaction" };
  if (/Settlement$/.test(action)) return { to: pageOf({ id, command: "SETTLEMENT" }), what: "settlement" };
  if (/Acquirer$/.test(action)) return { to: "/acquirers", what: "acquirer" };
  if (/Exception$/.test(action)) return { to: "/clearing", what: "clearing exception" };
  return undefined;
}

function shortened(text: string): string {
  return /^[0-9a-f-]{36}$/.test(text) ? `${text.slice(0, 8)}…${text.slice(-4)}` : text;
}

/** The change that an action made, a line for each value that differs. */
function changesOf({ before, after }: AuditItem): readonly string[] {
  const [was, is] = [flat(before), flat(after)];
  return [...new Set([...was.keys(), ...is.keys()])]
    .filter((path) => was.get(path) !== is.get(path) && !/(?:^|\.)updatedAt$/.test(path))
    .map((path) => {
      const [old, now] = [was.get(path), is.get(path)];
      if (before === null) return `${path}: ${now}`;
      return `${path}: ${old ?? "nothing"} → ${now ?? "nothing"}`;
    });
}

/** The values of a JSON text by their paths. */
function flat(json: unknown): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  const walk = (path: string, value: unknown) => {
    if (typeof value !== "object" || value === null) values.set(path || "value", String(value));
    else if (Array.isArray(value) && value.every((one) => typeof one !== "object")) values.set(path, value.join(", "));
    else for (const [name, inner] of Object.entries(value)) walk(path === "" ? name : `${path}.${name}`, inner);
  };
  if (json !== null && json !== undefined) walk("", json);
  return values;
}
