import { SegmentedControl } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { useSearchParams } from "wouter";
import { api } from "../api/call.ts";
import type { Figures } from "../api/operations.ts";
import { ErrorBoundary, Failure } from "../display/failure.tsx";
import { Loading } from "../display/list.tsx";
import { Empty, Panel } from "../display/page.tsx";
import { State } from "../display/state.tsx";
import { duration } from "../display/time.tsx";
import { useSession } from "../session/session.ts";

const lookEveryMs = 10_000;

/** A partner's figures next to those of all partners in the same period. */
export function Statistics({ id }: { readonly id: string }) {
  const [params, setParams] = useSearchParams();
  const isOperator = useSession().session.kind === "operator";
  const span = spanOf(params);
  const theirs = useQuery({
    queryKey: ["figures", id, span],
    queryFn: () => (isOperator ? api.getPartnerFigures(id, { span }) : api.getFigures({ span })),
    refetchInterval: lookEveryMs,
  });
  const everybody = useQuery({
    queryKey: ["overview", span],
    queryFn: () => api.getOverview({ span }),
    enabled: isOperator,
    refetchInterval: lookEveryMs,
  });
  if (theirs.isPending) return <Loading />;
  if (theirs.isError) return <Failure error={theirs.error} onRetry={() => void theirs.refetch()} />;
  return (
    <Panel
      title="Deliveries"
      actions={
        <SpanControl
          span={span}
          onChange={(over) =>
            setParams((before) => {
              const next = new URLSearchParams(before);
              next.set("over", over);
              return next;
            })
          }
        />
      }
      flush
    >
      <div className="inside">
        {theirs.data.points.length === 0 ? (
          <Empty title="Nothing was delivered in this time" />
        ) : (
          <ErrorBoundary>
            <Suspense fallback={<Loading />}>
              <Chart points={theirs.data.points} span={span} asOf={theirs.data.asOf} />
            </Suspense>
          </ErrorBoundary>
        )}
      </div>
      <div className="table-scroll">
        <table className="dense-table">
          <thead>
            <tr>
              <th scope="col">
                <span className="unseen">Whose</span>
              </th>
              <th scope="col" className="number">
                Delivered
              </th>
              <th scope="col" className="number">
                Failed attempts
              </th>
              <th scope="col">Succeeds</th>
              <th scope="col" className="number">
                Endpoint, median
              </th>
              <th scope="col" className="number from-tablet">
                Endpoint, 99th percentile
              </th>
              <th scope="col" className="number from-tablet">
                Delivery, median
              </th>
              <th scope="col" className="number from-tablet">
                Delivery, 99th percentile
              </th>
            </tr>
          </thead>
          <tbody>
            <Row name={isOperator ? "This partner" : "You"} figures={theirs.data} />
            {everybody.data !== undefined && <Row name="All partners" figures={everybody.data.figures} />}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function Row({ name, figures }: { readonly name: string; readonly figures: Figures }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td className="number">{figures.accepted.toLocaleString("en")}</td>
      <td className="number">{figures.failed.toLocaleString("en")}</td>
      <td>
        <Share of={figures} />
      </td>
      <td className="number">{shownMs(figures.attemptP50Ms)}</td>
      <td className="number from-tablet">{shownMs(figures.attemptP99Ms)}</td>
      <td className="number from-tablet">{shownMs(figures.deliveryP50Ms)}</td>
      <td className="number from-tablet">{shownMs(figures.deliveryP99Ms)}</td>
    </tr>
  );
}

export type OverviewSpan = Figures["span"];
const spans: readonly { value: OverviewSpan; label: string }[] = [
  { value: "hour", label: "Hour" },
  { value: "day", label: "Day" },
  { value: "week", label: "Week" },
];

export function spanOf(params: URLSearchParams): OverviewSpan {
  return spans.find(({ value }) => value === params.get("over"))?.value ?? "hour";
}

export function SpanControl({
  span,
  onChange,
}: {
  readonly span: OverviewSpan;
  readonly onChange: (span: OverviewSpan) => void;
}) {
  return (
    <SegmentedControl
      size="xs"
      aria-label="Time span"
      value={span}
      onChange={(value) => onChange(value as OverviewSpan)}
      data={[...spans]}
    />
  );
}

export function Share({
  of: { accepted, failed },
}: {
  readonly of: { readonly accepted: number; readonly failed: number };
}) {
  if (accepted + failed === 0) return null;
  const share = accepted / (accepted + failed);
  const tone = share >= 0.99 ? "good" : share >= 0.5 ? "wait" : "bad";
  return <State tone={tone} word={`${(Math.floor(share * 1_000) / 10).toFixed(1)} %`} />;
}

export function shownMs(ms: number | null): string {
  return ms === null ? "–" : duration(ms);
}

/**
 * The chart, loaded when it is shown. uPlot makes a number format of the browser's language at that moment, and a
 * browser in a POSIX locale names one that Intl refuses (en-US@posix).
 */
export const Chart = lazy(() => {
  try {
    new Intl.NumberFormat(navigator.language);
  } catch {
    Object.defineProperty(navigator, "language", { value: "en" });
  }
  return import("./chart.tsx");
});
