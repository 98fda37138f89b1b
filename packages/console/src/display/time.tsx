import { useSyncExternalStore } from "react";

const minuteMs = 60_000;
const hourMs = 3_600_000;

let nowMs = Date.now();
const watchers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  if (timer === undefined) nowMs = Date.now();
  timer ??= setInterval(() => {
    nowMs = Date.now();
    for (const each of watchers) each();
  }, 1_000);
  return () => {
    watchers.delete(watcher);
    if (watchers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

const known = () => nowMs;

/** The time, updated every second by one timer for the whole page. */
export function useNow(): number {
  return useSyncExternalStore(watch, known, known);
}

const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const year = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

/** In the viewer's zone: the time of day, the day where it is not today, and the year where it is not this one. */
export function clockTime(atMs: number, now: number): string {
  const [at, today] = [new Date(atMs), new Date(now)];
  if (at.toDateString() === today.toDateString()) return clock.format(at);
  return `${(at.getFullYear() === today.getFullYear() ? day : year).format(at)} ${clock.format(at)}`;
}

/** Such as "40 s ago" or "in 2 min", for times less than an hour away. */
export function shownTime(atMs: number, now: number): string {
  const awayMs = Math.abs(now - atMs);
  if (awayMs >= hourMs) return clockTime(atMs, now);
  if (awayMs < 1_000) return "now";
  const away = awayMs < minuteMs ? `${Math.floor(awayMs / 1_000)} s` : `${Math.floor(awayMs / minuteMs)} min`;
  return atMs <= now ? `${away} ago` : `in ${away}`;
}

/** Such as "38 ms", "2 min 36 s" or "3 h": two units at most. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const s = Math.round(ms / 1_000);
  if (s < 60) return ms < 10_000 && ms % 1_000 !== 0 ? `${(ms / 1_000).toFixed(1)} s` : `${s} s`;
  if (s < 3_600) return s % 60 === 0 ? `${s / 60} min` : `${Math.floor(s / 60)} min ${s % 60} s`;
  const min = Math.round(s / 60);
  if (min < 48 * 60) return min % 60 === 0 ? `${min / 60} h` : `${Math.floor(min / 60)} h ${min % 60} min`;
  return `${Math.round(min / 60 / 24)} days`;
}

/** A moment: relative under an hour, with UTC to hover over. */
export function Time({ at, exact = false }: { readonly at: string; readonly exact?: boolean }) {
  const now = useNow();
  const atMs = Date.parse(at);
  return (
    <time dateTime={at} title={`${at.replace("T", " ").replace("Z", "")} UTC`}>
      {exact ? preciseTime(atMs, now) : shownTime(atMs, now)}
    </time>
  );
}

/** A moment from which something may happen: now, once it has passed. */
export function ComingTime({ at }: { readonly at: string }) {
  return Date.parse(at) <= useNow() ? <span>now</span> : <Time at={at} />;
}

/** A moment as an input of the kind datetime-local has it: in the viewer's zone. */
export function localInput(at: string | null): string {
  const atMs = Date.parse(at ?? "");
  if (Number.isNaN(atMs)) return "";
  return new Date(atMs - new Date(atMs).getTimezoneOffset() * minuteMs).toISOString().slice(0, 16);
}

/** The reverse; null where nothing is filled in. */
export function momentOfInput(local: string): string | null {
  const atMs = Date.parse(local);
  return Number.isNaN(atMs) ? null : new Date(atMs).toISOString();
}

function preciseTime(atMs: number, now: number): string {
  return `${clockTime(atMs, now)}.${String(new Date(atMs).getMilliseconds()).padStart(3, "0")}`;
}
