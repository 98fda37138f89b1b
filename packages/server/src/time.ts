/** Formats an instant, in milliseconds since 1970, as yyyymmddhhmmss in one time zone. */
export type ZoneFormat = (atMs: number) => string;

const formats = new Map<string, ZoneFormat>();

/**
 * The specification's time format, section 2.2 field 30, in an IANA time zone.
 *
 * @throws RangeError if there is no such zone.
 */
export function zoneFormat(timeZone: string): ZoneFormat {
  const known = formats.get(timeZone);
  if (known !== undefined) return known;
  const made = makeZoneFormat(timeZone);
  formats.set(timeZone, made);
  return made;
}

function makeZoneFormat(timeZone: string): ZoneFormat {
  const intl = new Intl.DateTimeFormat("en-US-u-ca-gregory-nu-latn", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  });
  // Most consecutive IPNs were completed in the same second, and other times near it: measured, 3 µs to call Intl,
  // 0.003 µs with the second's text.
  let [lastSecond, lastQuarter] = [Number.NaN, Number.NaN];
  let lastText = "";
  let offsetMs = 0;
  return (atMs) => {
    const second = Math.floor(atMs / 1_000);
    if (second === lastSecond) return lastText;
    const quarter = Math.floor(atMs / quarterMs);
    if (quarter !== lastQuarter) offsetMs = offsetAt(intl, quarter * quarterMs);
    [lastSecond, lastQuarter] = [second, quarter];
    lastText = new Date(second * 1_000 + offsetMs).toISOString().slice(0, 19).replaceAll(/[-T:]/g, "");
    return lastText;
  };
}

/** Zones change their offset at a quarter of an hour, if at all. */
const quarterMs = 900_000;

function offsetAt(intl: Intl.DateTimeFormat, atMs: number): number {
  const shown = new Map(intl.formatToParts(atMs).map(({ type, value }) => [type, Number(value)]));
  const part = (name: Intl.DateTimeFormatPartTypes) => shown.get(name) ?? 0;
  const [year, month, day] = [part("year"), part("month"), part("day")];
  return Date.UTC(year, month - 1, day, part("hour"), part("minute"), part("second")) - atMs;
}

/** As in the specification's sample, section 2.3 field 15: yyyy-mm-ddThh:mm:ssZ. */
export function utcTimestamp(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19)}Z`;
}

/**
 * Whether one time is later than another: each is an ISO 8601 instant, whatever its offset, or 14 digits in a time
 * zone.
 *
 * @throws RangeError if there is no such zone.
 */
export function isAfter(time: string, than: string, timeZone: string): boolean {
  if (time.includes("T") && than.includes("T")) return Date.parse(time) > Date.parse(than);
  const digitsIn = (text: string) => (text.includes("T") ? zoneFormat(timeZone)(Date.parse(text)) : text);
  return digitsIn(time) > digitsIn(than);
}

/** More than any zone differs from UTC. */
const offsetMsMax = 16 * 3_600_000;

/** The first instant of a day in a zone, and of the next day: also where clocks change at midnight. */
export function dayIn(timeZone: string, date: string): readonly [fromMs: number, toMs: number] {
  const begin = (utcMs: number) => {
    const day = new Date(utcMs).toISOString().slice(0, 10).replaceAll("-", "");
    const dayAt = (atMs: number) => zoneFormat(timeZone)(atMs).slice(0, 8);
    let [before, from] = [utcMs - offsetMsMax, utcMs + offsetMsMax];
    while (from - before > 1_000) {
      const middle = Math.floor((before + from) / 2_000) * 1_000;
      if (dayAt(middle) < day) before = middle;
      else from = middle;
    }
    return from;
  };
  const utcMs = Date.parse(`${date}T00:00:00Z`);
  return [begin(utcMs), begin(utcMs + 86_400_000)];
}
