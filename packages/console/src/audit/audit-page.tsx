import { Button, Group, TextInput } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Fragment, useState } from "react";
import { useSearchParams } from "wouter";
import { api } from "../api/call.ts";
import { Empty } from "../display/empty.tsx";
import { Failure } from "../display/failure.tsx";
import { More } from "../display/more.tsx";
import { Page } from "../display/page.tsx";
import { Loading } from "../display/rows.tsx";
import { Time } from "../display/time.tsx";

const rows = 50;

/** The audit, the newest first. */
export function AuditPage() {
  const [params, setParams] = useSearchParams();
  const [actor, subject] = [params.get("actor") ?? undefined, params.get("subject") ?? undefined];
  const [opened, setOpened] = useState<number>();
  const pages = useInfiniteQuery({
    queryKey: ["audit", actor, subject],
    queryFn: ({ pageParam, signal }) => api.searchAudit({ actor, subject, limit: rows, after: pageParam }, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
  });
  const items = pages.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Page title="Audit">
      <form
        key={params.toString()}
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          const given = ["actor", "subject"].map((name) => [name, String(form.get(name) ?? "").trim()]);
          setParams(new URLSearchParams(given.filter(([, value]) => value !== "") as [string, string][]));
        }}
      >
        <Group gap="xs" align="end">
          <TextInput size="xs" name="actor" label="Who" defaultValue={actor ?? ""} w={200} />
          <TextInput size="xs" name="subject" label="On what (id)" defaultValue={subject ?? ""} w={300} />
          <Button size="xs" type="submit">
            Apply
          </Button>
        </Group>
      </form>
      {pages.isPending && <Loading />}
      {pages.isError && <Failure error={pages.error} onRetry={() => void pages.refetch()} />}
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
                <th scope="col" className="from-tablet">
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
                    <td className="wraps">
                      {item.actor}{" "}
                      <span className="state" data-tone="quiet">
                        {item.role}
                      </span>
                    </td>
                    <td className="wraps">{inWords(item.action)}</td>
                    <td className="mono wraps from-tablet">{item.subject}</td>
                    <td className="mono from-tablet">{item.address}</td>
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
                        <pre className="code">
                          {JSON.stringify({ before: item.before, after: item.after, hash: item.hash }, null, 2)}
                        </pre>
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

/** An operationId as words, such as "rotate key". */
function inWords(action: string): string {
  return action.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
