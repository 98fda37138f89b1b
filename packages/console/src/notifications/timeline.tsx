import { Anchor, Text } from "@mantine/core";
import { IconBell, IconCircleDot, IconFlag } from "@tabler/icons-react";
import { useState } from "react";
import type { InspectedNotification, NotificationDetail } from "../api/operations.ts";
import { AttemptMark } from "../display/state.tsx";
import { ComingTime, duration, Time } from "../display/time.tsx";
import { reasonInWords } from "./words.ts";

type Detail = NotificationDetail & Partial<Pick<InspectedNotification, "events">>;
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
  const next = one.nextAttemptAt;
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
  const { attemptNo, httpStatus, reason, durationMs, url, address, keyId, answer, detail } = attempt;
  const outcome = httpStatus ?? reasonInWords(reason).replace(/^it /, "");
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
      {detail !== null && httpStatus === null && (
        <Text size="xs" c="dimmed" className="wraps">
          {detail}
        </Text>
      )}
      {showsAnswer && <pre className="code">{answer === "" ? "(empty)" : answer}</pre>}
    </>
  );
}

function EventLine({ event }: { readonly event: InspectedNotification["events"][number] }) {
  const about = Object.entries(event.detail).map(([name, value]) =>
    name === "detail" ? String(value) : `${name} ${String(value)}`,
  );
  return (
    <>
      {event.kind.replaceAll("_", " ")}
      {about.length > 0 && (
        <Text size="xs" c="dimmed" className="wraps">
          {about.join(" · ")}
        </Text>
      )}
    </>
  );
}
