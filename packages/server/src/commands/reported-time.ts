const digitsPattern = /^\d{14}$/;
/** With its zone, because otherwise the instant is ambiguous. */
const instantPattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const monthDays = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Whether a switch may report this time: 14 digits, which are sent as given, or an ISO 8601 instant; it must exist. */
export function isReportedTime(text: string): boolean {
  if (digitsPattern.test(text)) return exists(text, 0);
  return instantPattern.test(text) && exists(text, 1);
}

/** @param gap the number of characters between two parts */
function exists(text: string, gap: number): boolean {
  const pair = (nth: number) => Number(text.slice(4 + nth * (2 + gap) + gap, 6 + nth * (2 + gap) + gap));
  const year = Number(text.slice(0, 4));
  const month = pair(0);
  const day = pair(1);
  return day >= 1 && day <= daysIn(year, month) && pair(2) <= 23 && pair(3) <= 59 && pair(4) <= 59;
}

/** Zero for a month that does not exist. */
function daysIn(year: number, month: number): number {
  const isLeapDay = month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return (monthDays[month - 1] ?? 0) + (isLeapDay ? 1 : 0);
}
