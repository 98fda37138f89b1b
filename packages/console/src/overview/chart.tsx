import "uplot/dist/uPlot.min.css";
import { useComputedColorScheme } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import type { Figures } from "../api/operations.ts";
import type { OverviewSpan } from "./span.tsx";

const spanS: Readonly<Record<OverviewSpan, number>> = { hour: 3_600, day: 86_400, week: 7 * 86_400 };
const height = 190;

interface Shown {
  readonly points: Figures["points"];
  readonly span: OverviewSpan;
  readonly asOf: string;
}

/** Deliveries over time. Its figures are next to it as text, too. */
export default function Chart(shown: Shown) {
  // Colours are read once: another scheme is another plot.
  return <Plot key={useComputedColorScheme("light")} {...shown} />;
}

function Plot({ points, span, asOf }: Shown) {
  const { ref, width } = useElementSize();
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (place.current === null || width === 0) return;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const line = (stroke: string, fill?: string): uPlot.Series => ({
      stroke,
      width: 1.5,
      points: { show: false },
      ...(fill && { fill }),
    });
    const axis = {
      stroke: colour("--mantine-color-dimmed"),
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { show: false },
      font: "11px Inter Variable",
    };
    const plot = new uPlot(
      {
        width,
        height,
        legend: { show: false },
        cursor: { drag: { x: false, y: false } },
        scales: { y: { range: (_, __, max) => [0, Math.max(4, max * 1.1)] } },
        axes: [
          { ...axis, size: 26, values: (_, ticks) => ticks.map((at) => tickOf(at, span)) },
          { ...axis, size: 44 },
        ],
        series: [
          {},
          line(colour("--mantine-color-accent-5"), `${colour("--mantine-color-accent-5")}22`),
          line(colour("--wait")),
          line(colour("--bad")),
        ],
      },
      columns(points, span, asOf),
      place.current,
    );
    return () => plot.destroy();
  }, [width, points, span, asOf]);
  return (
    <div ref={ref}>
      <div ref={place} role="img" aria-label={summaryOf(points)} style={{ height }} />
    </div>
  );
}

function summaryOf(points: Figures["points"]): string {
  const sum = (name: "accepted" | "failed" | "parked") => points.reduce((total, point) => total + point[name], 0);
  return `Over time: ${sum("accepted")} delivered, ${sum("failed")} failed attempts, ${sum("parked")} parked`;
}

/** Times without any delivery are zero, and not a line from one to the next. */
function columns(points: Figures["points"], span: OverviewSpan, asOf: string): uPlot.AlignedData {
  const stepS = span === "week" ? 3_600 : 60;
  const toS = Math.floor(Date.parse(asOf) / 1_000 / stepS) * stepS;
  const times = Array.from({ length: spanS[span] / stepS }, (_, at) => toS - spanS[span] + (at + 1) * stepS);
  const known = new Map(points.map((point) => [Date.parse(point.at) / 1_000, point]));
  // The time that has just begun would look like a breakdown.
  if (!known.has(toS)) times.pop();
  const column = (name: "accepted" | "failed" | "parked") => times.map((at) => known.get(at)?.[name] ?? 0);
  return [times, column("accepted"), column("failed"), column("parked")];
}

const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric" });

function tickOf(atS: number, span: OverviewSpan): string {
  return (span === "week" ? day : time).format(atS * 1_000);
}
