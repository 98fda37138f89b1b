/** Zones change their offset at a quarter of an hour, if at all. */
const quarterMs = 900_000;

/** Times as a zone's clocks show them. */
export class ZonedTime {
  readonly #format: Intl.DateTimeFormat;
  #quarter = Number.NaN;
  #offsetMs = 0;

  constructor(timeZone: string) {
    this.#format = new Intl.DateTimeFormat("en-US", {
      timeZone,
      calendar: "gregory",
      numberingSystem: "latn",
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  }

  /** MMDDhhmmss. */
  dateAndTime(atMs: number): string {
    return this.withYear(atMs).slice(2);
  }

  /** YYMMDDhhmmss. */
  withYear(atMs: number): string {
    return new Date(atMs + this.#offsetAt(atMs)).toISOString().slice(2, 19).replaceAll(/[-T:]/g, "");
  }

  /** Remembered: to ask for it takes longer than to pack a whole message. */
  #offsetAt(atMs: number): number {
    const quarter = Math.floor(atMs / quarterMs);
    if (quarter === this.#quarter) return this.#offsetMs;
    const shown = new Map(this.#format.formatToParts(atMs).map(({ type, value }) => [type, Number(value)]));
    const part = (name: Intl.DateTimeFormatPartTypes) => shown.get(name) ?? 0;
    const shownMs = Date.UTC(
      part("year"),
      part("month") - 1,
      part("day"),
      part("hour"),
      part("minute"),
      part("second"),
    );
    this.#quarter = quarter;
    this.#offsetMs = shownMs - Math.floor(atMs / 1_000) * 1_000;
    return this.#offsetMs;
  }
}
