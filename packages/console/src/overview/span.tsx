import { SegmentedControl } from "@mantine/core";
import { State } from "../display/state.tsx";
import { duration } from "../display/time.tsx";

export type FigureSpan = "hour" | "day" | "week";
const spans: readonly { value: FigureSpan; label: string }[] = [
  { value: "hour", label: "Hour" },
  { value: "day", label: "Day" },
  { value: "week", label: "Week" },
];

export function spanOf(params: URLSearchParams): FigureSpan {
  return spans.find(({ value }) => value === params.get("over"))?.value ?? "hour";
}

export function SpanControl({
  span,
  onChange,
}: {
  readonly span: FigureSpan;
  readonly onChange: (span: FigureSpan) => void;
}) {
  return (
    <SegmentedControl
      size="xs"
      aria-label="Time span"
      value={span}
      onChange={(value) => onChange(value as FigureSpan)}
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
