import { Button, Group, TextInput } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Fragment, useState } from "react";
import { useSearchParams } from "wouter";
import { api, CallError } from "../api/call.ts";
import { Empty } from "../display/empty.tsx";
import { Failure } from "../display/failure.tsx";
import { More } from "../display/more.tsx";
import { Page } from "../display/page.tsx";
import { Loading } from "../display/rows.tsx";
import { localInput, momentOfInput, Time } from "../display/time.tsx";
import { usePartners } from "../partners/use-partners.ts";
import { useMay } from "../session/session.ts";
import { type AuditItem, actionInWords, actorInWords, changesOf, type Names, SubjectOf } from "./audit-words.tsx";

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
