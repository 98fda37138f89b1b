const digitsPattern = /^(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})$/;
/** With its zone: without one, nobody can tell which instant is meant. */
const instantPattern =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** A time as a switch may report it: 14 digits, which go out as given, or an ISO 8601 instant; a moment that exists. */
export function isReportedTime(text: string): boolean {
  const [, ...parts] = digitsPattern.exec(text) ?? instantPattern.exec(text) ?? [];
  const [year, month, day, hour, minute, second] = parts.map(Number);
  if (year === undefined || month === undefined || day === undefined) return false;
  if (hour === undefined || minute === undefined || second === undefined) return false;
  return day >= 1 && day <= daysIn(year, month) && hour <= 23 && minute <= 59 && second <= 59;
}

/** Zero for a month that does not exist. */
function daysIn(year: number, month: number): number {
  if (month < 1 || month > 12) return 0;
  const lastDay = new Date(0);
  lastDay.setUTCFullYear(year, month, 0);
  return lastDay.getUTCDate();
}
