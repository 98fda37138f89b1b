import { IconAlertTriangle, IconCircleCheck, IconCircleX, IconClock, IconPlayerPause } from "@tabler/icons-react";

type StateTone = "good" | "wait" | "bad" | "quiet";

const shapes = {
  good: IconCircleCheck,
  wait: IconClock,
  bad: IconAlertTriangle,
  quiet: IconPlayerPause,
};

export interface StateInWords {
  readonly tone: StateTone;
  readonly word: string;
}

/** A state has a colour, a word and a shape. */
export function State({ tone, word }: StateInWords) {
  const Shape = shapes[tone];
  return (
    <span className="state" data-tone={tone}>
      <Shape size={14} aria-hidden />
      {word}
    </span>
  );
}

export const notificationStates = {
  accepted: { tone: "good", word: "Delivered" },
  pending: { tone: "wait", word: "Pending" },
  parked: { tone: "bad", word: "Parked" },
} as const satisfies Record<string, StateInWords>;

export const transactionStates = {
  SUCCESS: { tone: "good", word: "Success" },
  ERROR: { tone: "bad", word: "Declined" },
  INIT: { tone: "wait", word: "Under way" },
} as const satisfies Record<string, StateInWords>;

/** The mark of one attempt in a timeline. */
export function AttemptMark({ succeeded }: { readonly succeeded: boolean }) {
  return succeeded ? (
    <IconCircleCheck size={14} color="var(--good)" aria-hidden />
  ) : (
    <IconCircleX size={14} color="var(--bad)" aria-hidden />
  );
}

/** PREAUTH_COMPLETE is shown as PREAUTH-COMPLETE. */
export function shownCommand(command: string): string {
  return command.replace("_", "-");
}
