import "./schedule.css";
import { IconCircle, IconCircleCheck, IconCircleX, IconParking } from "@tabler/icons-react";
import type { NotificationDetail } from "../api/operations.ts";
import { clockTime, duration, useNow } from "../display/time.tsx";
import { reasonInWords } from "./words.ts";

const shownBefore = 6;
const shownComing = 8;

/** The retry schedule of a notification as a line: what was tried, what comes if it fails, and when it is parked. */
export function Schedule({ one }: { readonly one: NotificationDetail }) {
  const now = useNow();
  const { schedule, attempts } = one;
  if (schedule === null) return null;
  const made = attempts.filter(({ startedAt }) => startedAt >= schedule.beganAt);
  const [next = schedule.endsAt, ...later] = schedule.attempts;
  const nextMs = Date.parse(next);
  return (
    <ol className="schedule" aria-label="Retry schedule">
      {made.length > shownBefore && <li className="gap">{made.length - shownBefore} earlier</li>}
      {made.slice(-shownBefore).map((attempt) => (
        <li key={attempt.startedAt} data-step={attempt.reason === null ? "good" : "bad"}>
          {attempt.reason === null ? <IconCircleCheck size={16} aria-hidden /> : <IconCircleX size={16} aria-hidden />}
          <strong>{attempt.httpStatus ?? reasonInWords(attempt.reason).replace(/^it /, "")}</strong>
          <span>{clockTime(Date.parse(attempt.startedAt), now)}</span>
        </li>
      ))}
      <li data-step="next" aria-current="step">
        <IconCircle size={16} aria-hidden />
        <strong>Next try</strong>
        <span>{nextMs <= now ? "now" : `in ${duration(nextMs - now)}`}</span>
      </li>
      {later.slice(0, shownComing).map((at, nth) => (
        <li key={at}>
          <IconCircle size={10} aria-hidden />
          <span>+ {duration(Date.parse(at) - Date.parse(schedule.attempts[nth] ?? at))}</span>
        </li>
      ))}
      {later.length > shownComing && <li className="gap">{later.length - shownComing} more</li>}
      <li data-step="end">
        <IconParking size={16} aria-hidden />
        <strong>Parked</strong>
        <span>{clockTime(Date.parse(schedule.endsAt), now)}</span>
      </li>
    </ol>
  );
}
