import { SegmentedControl } from "@mantine/core";
import type { Figures } from "../api/operations.ts";
import { State } from "../display/state.tsx";
import { duration } from "../display/time.tsx";

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
