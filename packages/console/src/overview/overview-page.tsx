import { Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { api } from "../api/call.ts";
import type { Overview } from "../api/operations.ts";
import { type ListColumn, Table } from "../display/list.tsx";
import { Empty, Loaded } from "../display/loaded.tsx";
import { Figure, Page, Panel } from "../display/page.tsx";
import { duration, Time, useNow } from "../display/time.tsx";
import { isTask, partnerColumnEverywhere } from "../partners/partner.tsx";
import { DeliveriesChart, type OverviewSpan, percentOf, Share, shownMs, useSpan } from "./figures.tsx";
import { NotReceivedNow } from "./trouble.tsx";

/** The state of all deliveries, live. */
export function OverviewPage() {
  const { span, control } = useSpan();
  const isLive = useLive(span);
  const overview = useQuery({
    queryKey: ["overview", span],
    queryFn: () => api.getOverview({ span }),
    refetchInterval: isLive ? false : 10_000,
  });
  return (
    <Page
      title="Overview"
      actions={
        <>
          {overview.data !== undefined && (
            <Text c="dimmed" size="xs" component="div">
              {isLive ? (
                "live"
              ) : (
                <>
                  as of <Time at={overview.data.figures.asOf} />
                </>
              )}
            </Text>
          )}
          {control}
        </>
      }
    >
      <Loaded of={overview}>{(data) => <Shown overview={data} span={span} />}</Loaded>
    </Page>
  );
}

function Shown({ overview, span }: { readonly overview: Overview; readonly span: OverviewSpan }) {
  const { figures, standing, failing, trouble, parked } = overview;
  const now = useNow();
  const oldestMs = overview.oldestPendingAt === null ? null : now - Date.parse(overview.oldestPendingAt);
  const inDoubt = standing.reversalsParked + standing.reversalsPending + standing.settlementsWaiting;
  return (
    <>
      <Hero overview={overview} span={span} />
      <NotReceivedNow trouble={trouble} parked={parked} />
      <div className="figures">
        <Figure label="Delivered" value={figures.accepted.toLocaleString("en")} />
        <Figure
          label="Failed attempts"
          value={figures.failed.toLocaleString("en")}
          tone={figures.failed > 0 ? "wait" : undefined}
        />
        <Figure
          label="Pending"
          value={overview.pending.toLocaleString("en")}
          note={oldestMs === null ? undefined : `oldest ${duration(Math.max(0, oldestMs))}`}
          to="/notifications?state=pending"
        />
        <Figure
          label="Parked"
          value={standing.parked.toLocaleString("en")}
          tone={standing.parked === 0 ? undefined : parked.every(isTask) ? "wait" : "bad"}
          to="/parked"
        />
        <Figure
          label="Tripped circuits"
          value={String(standing.tripped)}
          tone={standing.tripped > 0 ? "bad" : undefined}
          to="/partners?tab=endpoints"
        />
        <Figure
          label="Money in doubt"
          value={String(inDoubt)}
          tone={standing.reversalsParked > 0 ? "bad" : inDoubt > 0 ? "wait" : undefined}
          to="/money"
        />
      </div>
      <Panel title={span === "week" ? "Deliveries per hour" : "Deliveries per minute"}>
        <DeliveriesChart figures={figures} />
      </Panel>
      <div className="figures">
        <Figure label="Delivery, median" value={shownMs(figures.deliveryP50Ms)} note="created → accepted" />
        <Figure label="Delivery, 99th percentile" value={shownMs(figures.deliveryP99Ms)} note="created → accepted" />
        <Figure label="Endpoints, median" value={shownMs(figures.attemptP50Ms)} note="one attempt" />
        <Figure label="Endpoints, 99th percentile" value={shownMs(figures.attemptP99Ms)} note="one attempt" />
      </div>
      <Panel title="Failed attempts of the last hour" flush>
        {failing.length === 0 ? (
          <Empty title="None failed within the last hour" />
        ) : (
          <Table items={failing} columns={failingColumns} keyOf={({ partnerId }) => partnerId} />
        )}
      </Panel>
    </>
  );
}

const during = { hour: "in the last hour", day: "in the last day", week: "in the last week" } as const;

/** The answer to the first question of the day, in one sentence: does everybody receive what is theirs? */
function Hero({ overview, span }: { readonly overview: Overview; readonly span: OverviewSpan }) {
  const { figures, trouble, parked, pending, standing } = overview;
  const notReceiving = [...trouble, ...parked].filter((one) => !isTask(one));
  const names = new Map(notReceiving.map(({ partnerId, partnerName }) => [partnerId, partnerName]));
  const isGood = names.size === 0;
  const [name = ""] = names.values();
  const words =
    names.size > 1
      ? `${names.size} partners do not receive their notifications`
      : names.size === 1
        ? `${name} does not receive its notifications`
        : pending + standing.parked > 0
          ? "Every partner receives its notifications"
          : "Everything is delivered";
  const quick =
    figures.deliveryP50Ms === null
      ? ""
      : `, half of them within ${shownMs(figures.deliveryP50Ms)}, 99 % within ${shownMs(figures.deliveryP99Ms)}`;
  const tried = figures.accepted + figures.failed;
  return (
    <section className="hero" data-tone={isGood ? "good" : "bad"} aria-label="Now">
      <div>
        <h2 role="status">{words}</h2>
        <p className="note">
          {figures.accepted.toLocaleString("en")} delivered {during[span]}
          {quick}
        </p>
      </div>
      <dl>
        <div>
          <dt>of attempts succeed</dt>
          <dd>{tried === 0 ? "–" : percentOf(figures)}</dd>
        </div>
        <div>
          <dt>under way</dt>
          <dd>{pending.toLocaleString("en")}</dd>
        </div>
      </dl>
    </section>
  );
}

const failingColumns: readonly ListColumn<Overview["failing"][number]>[] = [
  partnerColumnEverywhere,
  { name: "Failed attempts", show: ({ failed }) => failed.toLocaleString("en"), look: "number" },
  { name: "Delivered", show: ({ accepted }) => accepted.toLocaleString("en"), look: "number", from: "tablet" },
  {
    name: "Parked",
    show: ({ parked, partnerId }) =>
      parked === 0 ? 0 : <Link href={`/parked?partner=${partnerId}`}>{parked.toLocaleString("en")}</Link>,
    look: "number",
  },
  { name: "Succeeds", show: (one) => <Share of={one} /> },
];

/** Keeps a query's answer up to date by server-sent events. @returns whether they arrive */
function useLive(span: string): boolean {
  const queries = useQueryClient();
  const [isLive, setIsLive] = useState(false);
  useEffect(() => {
    const source = new EventSource(`/operator/v1/overview/live?span=${span}`);
    source.onopen = () => setIsLive(true);
    source.onmessage = ({ data }: MessageEvent<string>) => {
      queries.setQueryData(["overview", span], JSON.parse(data) as Overview);
    };
    source.onerror = () => {
      setIsLive(false);
      // A browser stops after an error response: the query shows which one.
      if (source.readyState === EventSource.CLOSED) void queries.invalidateQueries({ queryKey: ["overview", span] });
    };
    return () => source.close();
  }, [queries, span]);
  return isLive;
}
