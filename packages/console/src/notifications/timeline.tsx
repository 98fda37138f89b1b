import { Anchor, Text } from "@mantine/core";
import { responseMeaning } from "@paybell/contract";
import {
  IconBell,
  IconCircle,
  IconCircleCheck,
  IconCircleDot,
  IconCircleX,
  IconFlag,
  IconParking,
} from "@tabler/icons-react";
import { useState } from "react";
import type { InspectedNotification, NotificationDetail } from "../api/operations.ts";
import { AttemptMark } from "../display/state.tsx";
import { ComingTime, clockTime, duration, Time, useNow } from "../display/time.tsx";
import type { Detail } from "./search.ts";
import { failureInWords } from "./words.ts";

type Attempt = NotificationDetail["attempts"][number];

interface Entry {
  readonly at: string;
  readonly key: string;
  readonly mark: React.ReactNode;
  readonly body: React.ReactNode;
}

/** From the command to the answer that counted, in the order in which it happened. */
export function Timeline({ one }: { readonly one: Detail }) {
  const entries: Entry[] = [
    {
      at: one.createdAt,
      key: "created",
      mark: <IconBell size={14} aria-hidden />,
      body: one.transactionId === null ? "Test notification made" : "Command completed, IPN committed with it",
    },
    ...one.attempts.map((attempt) => ({
      at: attempt.startedAt,
      key: `attempt ${attempt.startedAt} ${attempt.attemptNo}`,
      mark: <AttemptMark succeeded={attempt.reason === null} />,
      body: <AttemptLine attempt={attempt} />,
    })),
    ...(one.events ?? []).map((event, at) => ({
      at: event.at,
      key: `event ${at}`,
      mark: <IconFlag size={14} aria-hidden />,
      body: <EventLine event={event} />,
    })),
  ];
  entries.sort((a, b) => (a.at < b.at ? -1 : 1));
  const next = one.waiting?.because === "order" ? null : one.nextAttemptAt;
  return (
    <ol className="timeline">
      {entries.map(({ key, at, mark, body }) => (
        <li key={key}>
          <Time at={at} exact />
          <span className="mark">{mark}</span>
          <div className="wraps">{body}</div>
        </li>
      ))}
      {next != null && (
        <li>
          <ComingTime at={next} />
          <span className="mark">
            <IconCircleDot size={14} aria-hidden />
          </span>
          <Text c="dimmed">Next attempt</Text>
        </li>
      )}
    </ol>
  );
}

function AttemptLine({ attempt }: { readonly attempt: Attempt }) {
  const [showsAnswer, setShowsAnswer] = useState(false);
  const { attemptNo, httpStatus, durationMs, url, address, keyId, answer, detail } = attempt;
  const outcome = httpStatus ?? failureInWords(attempt).replace(/^it /, "");
  return (
    <>
      <div>
        Attempt {attemptNo}: <strong>{outcome}</strong> after {duration(durationMs)}
        {answer !== null && (
          <>
            {" · "}
            <Anchor
              component="button"
              size="sm"
              onClick={() => setShowsAnswer(!showsAnswer)}
              aria-expanded={showsAnswer}
            >
              {showsAnswer ? "hide the answer" : "answer"}
            </Anchor>
          </>
        )}
      </div>
      <Text size="xs" c="dimmed" className="wraps">
        {[url, address, keyId === null ? null : `key ${keyId.slice(0, 8)}…`]
          .filter((part) => part !== null)
          .join(" · ")}
      </Text>
      {detail !== null && httpStatus === null && attempt.reason !== "tls" && (
        <Text size="xs" c="dimmed" className="wraps">
          {detail}
        </Text>
      )}
      {showsAnswer && <pre className="code">{answer === "" ? "(empty)" : answer}</pre>}
    </>
  );
}

/** Events whose words are not the words of their kind. */
const eventWords: Readonly<Record<string, string>> = {
  reversal_refused: "The acquirer refused its Reversal",
  reversal_parked: "Its Reversal was given up",
};

function EventLine({ event: { kind, detail } }: { readonly event: InspectedNotification["events"][number] }) {
  const words = kind.replaceAll("_", " ");
  // What parked it is the last attempt, in the line above.
  const told = kind === "parked" ? ["detail"] : Object.keys(detail);
  const about = told
    .filter((name) => detail[name] !== undefined)
    .map((name) => {
      const value = String(detail[name]);
      if (name === "responseCode") return `${value}: ${responseMeaning(value)}`;
      return name === "detail" ? value : `${name} ${value}`;
    });
  return (
    <>
      {eventWords[kind] ?? words.charAt(0).toUpperCase() + words.slice(1)}
      {about.length > 0 && (
        <Text size="xs" c="dimmed" className="wraps">
          {about.join(" · ")}
        </Text>
      )}
    </>
  );
}

const shownBefore = 6;
const shownComing = 8;

/** The retry schedule of a notification as a line: what was tried, what comes if it fails, and when it is parked. */
export function Schedule({ one }: { readonly one: NotificationDetail }) {
  const now = useNow();
  const { schedule, attempts } = one;
  // The time until an earlier one of its chain is through is no step of its schedule.
  if (schedule === null || one.waiting?.because === "order") return null;
  const made = attempts.filter(({ startedAt }) => startedAt >= schedule.beganAt);
  const [next = schedule.endsAt, ...later] = schedule.attempts;
  const nextMs = Date.parse(next);
  // "1 more" takes the place of the one.
  const coming = later.length === shownComing + 1 ? later.length : shownComing;
  return (
    <ol className="schedule" aria-label="Retry schedule">
      {made.length > shownBefore && <li className="gap">{made.length - shownBefore} earlier</li>}
      {made.slice(-shownBefore).map((attempt) => (
        <li key={attempt.startedAt} data-tone={attempt.reason === null ? "good" : "bad"}>
          {attempt.reason === null ? <IconCircleCheck size={16} aria-hidden /> : <IconCircleX size={16} aria-hidden />}
          <strong title={failureInWords(attempt)}>{attempt.httpStatus ?? attempt.reason?.replaceAll("_", " ")}</strong>
          <span>{clockTime(Date.parse(attempt.startedAt), now)}</span>
        </li>
      ))}
      <li data-tone="wait" aria-current="step">
        <IconCircle size={16} aria-hidden />
        <strong>Next try</strong>
        <span>{nextMs <= now ? "now" : `in ${duration(nextMs - now)}`}</span>
      </li>
      {later.slice(0, coming).map((at, nth) => (
        <li key={at}>
          <IconCircle size={10} aria-hidden />
          <span>+ {duration(Date.parse(at) - Date.parse(schedule.attempts[nth] ?? at))}</span>
        </li>
      ))}
      {later.length > coming && <li className="gap">{later.length - coming} more</li>}
      <li data-tone="bad">
        <IconParking size={16} aria-hidden />
        <strong>Parked</strong>
        <span>{clockTime(Date.parse(schedule.endsAt), now)}</span>
      </li>
    </ol>
  );
}
