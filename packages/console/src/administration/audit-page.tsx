import { Button, Group, TextInput } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Fragment, type ReactNode, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { api, CallError } from "../api/call.ts";
import { Failure } from "../display/failure.tsx";
import { Loading, More } from "../display/list.tsx";
import { Empty, Page } from "../display/page.tsx";
import { localInput, momentOfInput, Time } from "../display/time.tsx";
import { usePartners } from "../partners/partner.tsx";
import { useMay } from "../session/session.ts";
import { pageOf } from "../shell/pages.ts";

const rows = 50;
const filters = [
  ["actor", "Who", 200],
  ["subject", "On what (id)", 300],
] as const;

/** The audit, the newest first: who did what to whom, by name. */
export function AuditPage() {
  const [params, setParams] = useSearchParams();
  const text = (name: string) => params.get(name) ?? undefined;
  const search = { actor: text("actor"), subject: text("subject"), from: text("from"), to: text("to") };
  const [opened, setOpened] = useState<number>();
  const names = useNames();
  const pages = useInfiniteQuery({
    queryKey: ["audit", search],
    queryFn: ({ pageParam, signal }) => api.searchAudit({ ...search, limit: rows, after: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  const items = pages.data?.pages.flatMap((page) => page.items) ?? [];
  const problems = pages.error instanceof CallError ? pages.error.fields : {};
  return (
    <Page title="Audit">
      <form
        key={params.toString()}
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          const typed = filters.map(([name]) => [name, String(form.get(name) ?? "").trim()] as const);
          const times = ["from", "to"].map((name) => [name, momentOfInput(String(form.get(name))) ?? ""] as const);
          setParams(
            new URLSearchParams([...typed, ...times].filter(([, value]) => value !== "") as [string, string][]),
          );
        }}
      >
        <Group gap="xs" align="start">
          {filters.map(([name, label, width]) => (
            <TextInput
              key={name}
              size="xs"
              name={name}
              label={label}
              defaultValue={params.get(name) ?? ""}
              w={width}
              error={problems[name]}
            />
          ))}
          {(["from", "to"] as const).map((name) => (
            <TextInput
              key={name}
              size="xs"
              type="datetime-local"
              name={name}
              label={name === "from" ? "From" : "Before"}
              defaultValue={localInput(params.get(name))}
              error={problems[name]}
            />
          ))}
          <Button size="xs" type="submit" mt={20}>
            Apply
          </Button>
        </Group>
      </form>
      {pages.isPending && <Loading />}
      {pages.isError && Object.keys(problems).length === 0 && (
        <Failure error={pages.error} onRetry={() => void pages.refetch()} />
      )}
      {pages.isSuccess && items.length === 0 && (
        <Empty title="Nothing was done yet">
          Every action of an operator or partner is recorded here, and every look at an IPN.
        </Empty>
      )}
      {items.length > 0 && (
        <div className="table-scroll">
          <table className="dense-table">
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">Who</th>
                <th scope="col">Did</th>
                <th scope="col" className="from-tablet">
                  On
                </th>
                <th scope="col" className="from-desktop">
                  From
                </th>
                <th scope="col">
                  <span className="unseen">Details</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {items.map((item) => (
                <Fragment key={item.seq}>
                  <tr>
                    <td className="nowrap">
                      <Time at={item.at} />
                    </td>
                    <td className="wraps" title={item.actor}>
                      {actorInWords(item, names)}{" "}
                      <span className="state" data-tone="quiet">
                        {item.role}
                      </span>
                    </td>
                    <td className="wraps">{actionInWords(item.action)}</td>
                    <td className="wraps from-tablet">
                      <SubjectOf item={item} names={names} />
                    </td>
                    <td className="mono from-desktop">{item.address}</td>
                    <td className="number">
                      <Button
                        size="compact-xs"
                        variant="subtle"
                        aria-expanded={opened === item.seq}
                        onClick={() => setOpened(opened === item.seq ? undefined : item.seq)}
                      >
                        {opened === item.seq ? "Close" : "Details"}
                      </Button>
                    </td>
                  </tr>
                  {opened === item.seq && (
                    <tr>
                      <td colSpan={6}>
                        <Details item={item} />
                      </td>
                    </tr>
                  )}
                </Fragment>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <More pages={pages} />
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
