import { useComputedColorScheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useEffect, useRef } from "react";
import "uplot/dist/uPlot.min.css";
import uPlot from "uplot";
import type { Figures } from "../api/operations.ts";

const spanS: Readonly<Record<Span, number>> = { hour: 3_600, day: 86_400, week: 7 * 86_400 };
const deliveredHeight = 170;
const failedHeight = 84;
const syncKey = "deliveries";

type Span = Figures["span"];
type Series = "accepted" | "failed" | "parked";
const names: Readonly<Record<Series, string>> = { accepted: "Delivered", failed: "Failed attempts", parked: "Parked" };
const tones = { accepted: undefined, failed: "wait", parked: "bad" } as const;

interface Shown {
  readonly points: Figures["points"];
  readonly span: Span;
  readonly asOf: string;
}

/**
 * Deliveries over time, and what failed under them on a scale of its own: a thousand deliveries beside two failures
 * would flatten those to nothing.
 */
export default function Chart(shown: Shown) {
  const sum = (name: Series) => shown.points.reduce((total, point) => total + point[name], 0);
  const hasFailed = sum("failed") + sum("parked") > 0;
  // Colours are read once: another scheme is another plot.
  const scheme = useComputedColorScheme("light");
  const words = `Over time: ${sum("accepted")} delivered, ${sum("failed")} failed attempts, ${sum("parked")} parked`;
  return (
    <div role="img" aria-label={words}>
      <div className="legend" aria-hidden>
        {(Object.keys(names) as Series[]).map((name) => (
          <span key={name} data-tone={tones[name]}>
            {names[name]} <strong>{sum(name).toLocaleString("en")}</strong>
          </span>
        ))}
      </div>
      <Plot key={`accepted ${scheme}`} {...shown} series={["accepted"]} hasTimes={!hasFailed} />
      {hasFailed && <Plot key={`failed ${scheme}`} {...shown} series={["failed", "parked"]} hasTimes />}
    </div>
  );
}

function Plot({
  points,
  span,
  asOf,
  series,
  hasTimes,
}: Shown & { readonly series: readonly Series[]; readonly hasTimes: boolean }) {
  const { ref, width } = useElementSize();
  const place = useRef<HTMLDivElement>(null);
  const of = series.join(" ");
  const height = series[0] === "accepted" ? deliveredHeight : failedHeight;
  useEffect(() => {
    if (place.current === null || width === 0) return;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const strokes = { accepted: colour("--chart"), failed: colour("--wait"), parked: colour("--bad") };
    const axis = {
      stroke: colour("--mantine-color-dimmed"),
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { show: false },
      font: "11px Inter Variable",
    };
    const shown = of.split(" ") as Series[];
    const bars = uPlot.paths.bars?.({ size: [0.7, 14, 2] });
    const plot = new uPlot(
      {
        width,
        height,
        // Half of the last time of the axis stands beside the plot.
        padding: [8, 20, hasTimes ? 0 : 6, 0],
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, sync: { key: syncKey } },
        scales: { y: { range: (_, __, max) => [0, Math.max(4, max * 1.1)] } },
        axes: [
          {
            ...axis,
            size: hasTimes ? 26 : 0,
            values: (_, ticks) => (hasTimes ? ticks.map((at) => tickOf(at, span)) : ticks.map(() => "")),
          },
          { ...axis, size: 44, space: 28, values: (_, ticks) => ticks.map((at) => (Number.isInteger(at) ? at : "")) },
        ],
        series: [
          {},
          ...shown.map((name) => ({
            stroke: strokes[name],
            width: name === "accepted" ? 2 : 0,
            fill: name === "accepted" ? `${strokes[name]}26` : strokes[name],
            points: { show: false },
            ...(name !== "accepted" && bars !== undefined && { paths: bars }),
          })),
        ],
      },
      columns(points, span, asOf, shown),
      place.current,
    );
    return () => plot.destroy();
  }, [width, height, points, span, asOf, of, hasTimes]);
  return (
    <div ref={ref}>
      <div ref={place} style={{ height }} />
    </div>
  );
}

/** Times without any delivery are zero, and not a line from one to the next. */
function columns(points: Figures["points"], span: Span, asOf: string, series: readonly Series[]): uPlot.AlignedData {
  const stepS = span === "week" ? 3_600 : 60;
  const toS = Math.floor(Date.parse(asOf) / 1_000 / stepS) * stepS;
  const times = Array.from({ length: spanS[span] / stepS }, (_, at) => toS - spanS[span] + (at + 1) * stepS);
  const known = new Map(points.map((point) => [Date.parse(point.at) / 1_000, point]));
  // The time that has just begun would look like a breakdown.
  if (!known.has(toS)) times.pop();
  return [times, ...series.map((name) => times.map((at) => known.get(at)?.[name] ?? 0))];
}

const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric" });

function tickOf(atS: number, span: Span): string {
  return (span === "week" ? day : time).format(atS * 1_000);
}
