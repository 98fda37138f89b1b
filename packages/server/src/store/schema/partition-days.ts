import { lowestId } from "../../ids.ts";

export const dayMs = 86_400_000;

/** The tables whose rows are assigned to a day by their id. */
export const historyTables = ["notifications", "attempts"] as const;

/** The start of the UTC day of a time, in milliseconds since 1970. */
export function dayOf(atMs: number): number {
  return Math.floor(atMs / dayMs) * dayMs;
}

export function partitionName(table: string, startMs: number): string {
  return `${table}_${new Date(startMs).toISOString().slice(0, 10).replaceAll("-", "")}`;
}

/** The day in a partition's name; undefined for a foreign name. */
export function dayOfPartition(name: string): number | undefined {
  const [, year, month, day] = /_(\d{4})(\d\d)(\d\d)$/.exec(name) ?? [];
  if (year === undefined || month === undefined || day === undefined) return undefined;
  return Date.UTC(Number(year), Number(month) - 1, Number(day));
}

/** The ids of a day: from the first, inclusive, to the second, exclusive. */
export function idsOfDay(startMs: number): readonly [string, string] {
  return [lowestId(startMs), lowestId(startMs + dayMs)];
}
