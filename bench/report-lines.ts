import type { MemorySample } from "./memory-watch.ts";
import type { Spread } from "./statistics.ts";

/** One line of the report below the table: what, what was found, what is to reach ("" for nothing). */
export function line(what: string, found: string, wanted: string): string {
  return `${what.padEnd(39)}${found}${wanted === "" ? "" : `   (${wanted})`}`;
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}

export function spreadText({ median, min, max }: Spread): string {
  return `${median.toFixed(3)} (${min.toFixed(2)}–${max.toFixed(2)})`;
}

export function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1_048_576)} MB`;
}

/** Each part of what is resident; the last is code, stacks, threads, and what malloc keeps. */
export function memoryText({ rss, heapUsed, heapTotal, external, arrayBuffers }: MemorySample): string {
  return (
    `${megabytes(rss)}: heap ${megabytes(heapTotal)} (${megabytes(heapUsed)} used), external ${megabytes(external)} ` +
    `(${megabytes(arrayBuffers)} buffers), other ${megabytes(rss - heapTotal - external)}`
  );
}
