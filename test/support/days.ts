const hourMs = 3_600_000;

/** In which a new day does not begin within the next hour. */
const [zone, hoursAhead] =
  new Date().getUTCHours() === 16 ? (["Asia/Tokyo", 9] as const) : (["Asia/Ho_Chi_Minh", 7] as const);

/** A partner or a viewer with this time zone has one day for as long as a test file runs. */
export const steadyTimeZone: string = zone;

/** The day of a time there, such as 2026-11-28. */
export function steadyDayOf(time: string): string {
  return new Date(Date.parse(time) + hoursAhead * hourMs).toISOString().slice(0, 10);
}
