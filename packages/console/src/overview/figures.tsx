import { SegmentedControl } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense } from "react";
import { api } from "../api/call.ts";
import type { Figures } from "../api/operations.ts";
import { type ListColumn, Table } from "../display/list.tsx";
import { Empty, ErrorBoundary, Loaded, Loading } from "../display/loaded.tsx";
import { Panel, useFilters } from "../display/page.tsx";
import { State } from "../display/state.tsx";
import { duration, Time } from "../display/time.tsx";
import { reasonInWords } from "../notifications/words.ts";
import { useSession } from "../session/session.ts";

export type OverviewSpan = Figures["span"];

const refreshMs = 10_000;
const spans: readonly { value: OverviewSpan; label: string }[] = [
  { value: "hour", label: "Hour" },
  { value: "day", label: "Day" },
  { value: "week", label: "Week" },
];

/** The time over which figures are shown, by the address, and what changes it. */
export function useSpan(): { readonly span: OverviewSpan; readonly control: ReactNode } {
  const { params, set } = useFilters();
  const span = spans.find(({ value }) => value === params.get("over"))?.value ?? "hour";
  const control = (
    <SegmentedControl
      aria-label="Time span"
      value={span}
      onChange={(over) => set({ over: over === "hour" ? null : over })}
      data={[...spans]}
    />
  );
  return { span, control };
}

interface Whose {
  readonly name: string;
  readonly of: Figures;
}

const columns: readonly ListColumn<Whose>[] = [
  { name: "Whose", show: ({ name }) => name, look: "head" },
  { name: "Delivered", show: ({ of }) => of.accepted.toLocaleString("en"), look: "number" },
  { name: "Failed attempts", show: ({ of }) => of.failed.toLocaleString("en"), look: "number" },
  { name: "Succeeds", show: ({ of }) => <Share of={of} /> },
  { name: "Endpoint, median", show: ({ of }) => shownMs(of.attemptP50Ms), look: "number" },
  { name: "Endpoint, 99th percentile", show: ({ of }) => shownMs(of.attemptP99Ms), look: "number", from: "tablet" },
  { name: "Delivery, median", show: ({ of }) => shownMs(of.deliveryP50Ms), look: "number", from: "tablet" },
  { name: "Delivery, 99th percentile", show: ({ of }) => shownMs(of.deliveryP99Ms), look: "number", from: "tablet" },
];

/** A partner's figures next to those of all partners in the same period. */
export function Statistics({ id }: { readonly id: string }) {
  const isOperator = useSession().session.kind === "operator";
  const { span, control } = useSpan();
  const theirs = useQuery({
    queryKey: ["figures", id, span],
    queryFn: () => (isOperator ? api.getPartnerFigures(id, { span }) : api.getFigures({ span })),
    refetchInterval: refreshMs,
  });
  const everybody = useQuery({
    queryKey: ["overview", span],
    queryFn: () => api.getOverview({ span }),
    enabled: isOperator,
    refetchInterval: refreshMs,
  }).data?.figures;
  return (
    <Loaded of={theirs}>
      {(figures) => (
        <Panel title="Deliveries" actions={control} flush>
          <div className="inside">
            {everybody !== undefined && <Verdict theirs={figures} all={everybody} />}
            <DeliveriesChart figures={figures} />
          </div>
          <Table
            items={[
              { name: isOperator ? "This partner" : "You", of: figures },
              ...(everybody === undefined ? [] : [{ name: "All partners", of: everybody }]),
            ]}
            columns={columns}
            keyOf={({ name }) => name}
          />
          {figures.failures.length > 0 && (
            <div className="next-part">
              <Table
                items={figures.failures}
                columns={failureColumns}
                keyOf={(one) => `${one.reason} ${one.httpStatus}`}
              />
            </div>
          )}
        </Panel>
      )}
    </Loaded>
  );
}

const failureColumns: readonly ListColumn<Figures["failures"][number]>[] = [
  { name: "Why attempts failed", show: ({ reason, httpStatus }) => reasonInWords(reason, httpStatus), look: "prose" },
  { name: "Attempts", show: ({ attempts }) => attempts.toLocaleString("en"), look: "number" },
  { name: "Last", show: ({ lastAt }) => <Time at={lastAt} />, look: "nowrap" },
];

/** Is it us or them? By the attempts at everybody else's endpoints in the same time. */
function Verdict({ theirs, all }: { readonly theirs: Figures; readonly all: Figures }) {
  if (theirs.failed === 0) return null;
  const others = { accepted: all.accepted - theirs.accepted, failed: all.failed - theirs.failed };
  const tried = others.accepted + others.failed;
  if (tried <= 0) return null;
  const share = others.accepted / tried;
  const where = share >= 0.9 ? "It is at this partner" : "It is not this partner alone";
  return <p role="status">{`${where}: of the attempts at all others ${percentOf(others)} succeed.`}</p>;
}

export function DeliveriesChart({ figures: { points, span, asOf } }: { readonly figures: Figures }) {
  if (points.length === 0) {
    return (
      <Empty title="Nothing was delivered in this time">Each completed command is delivered here within moments.</Empty>
    );
  }
  return (
    <ErrorBoundary>
      <Suspense fallback={<Loading />}>
        <Chart points={points} span={span} asOf={asOf} />
      </Suspense>
    </ErrorBoundary>
  );
}

/**
 * The chart, loaded when it is shown. uPlot makes a number format of the browser's language at that moment, and a
 * browser in a POSIX locale names one that Intl refuses (en-US@posix).
 */
const Chart = lazy(() => {
  try {
    new Intl.NumberFormat(navigator.language);
  } catch {
    Object.defineProperty(navigator, "language", { value: "en" });
  }
  return import("./chart.tsx");
});

interface Attempts {
  readonly accepted: number;
  readonly failed: number;
}

/** How many succeed, such as "99.9 %": 100.0 % means that none failed. */
export function percentOf({ accepted, failed }: Attempts): string {
  return `${(Math.floor((1_000 * accepted) / (accepted + failed)) / 10).toFixed(1)} %`;
}

export function Share({ of }: { readonly of: Attempts }) {
  const tried = of.accepted + of.failed;
  if (tried === 0) return null;
  const share = of.accepted / tried;
  return <State tone={share >= 0.99 ? "good" : share >= 0.5 ? "wait" : "bad"} word={percentOf(of)} />;
}

export function shownMs(ms: number | null): string {
  return ms === null ? "–" : duration(ms);
}
