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
  // Most consecutive IPNs were completed in the same second: measured, 3 µs to call Intl, 0.003 µs with a cache.
  let lastSecond = Number.NaN;
  let lastText = "";
  return (atMs) => {
    const second = Math.floor(atMs / 1000);
    if (second !== lastSecond) {
      lastText = digitsOf(intl.formatToParts(second * 1000));
      lastSecond = second;
    }
    return lastText;
  };
}

function digitsOf(parts: readonly Intl.DateTimeFormatPart[]): string {
  const digits: Partial<Record<Intl.DateTimeFormatPartTypes, string>> = {};
  for (const { type, value } of parts) digits[type] = value;
  const { year = "", month = "", day = "", hour = "", minute = "", second = "" } = digits;
  return `${year.padStart(4, "0")}${month}${day}${hour}${minute}${second}`;
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
