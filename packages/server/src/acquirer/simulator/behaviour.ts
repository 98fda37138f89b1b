import type { AcquirerMessage } from "../acquirer.ts";

/** The simulated bank's treatment of one message, and its link's. Missing fields mean normal treatment. */
export interface Behaviour {
  /** Declined with this code, whatever the books say; nothing is booked, closed or undone. */
  readonly declines?: string;
  /** The code under which a Sale, PreAuth, PreAuth-Complete or Void is approved, in place of 00. */
  readonly approves?: string;
  readonly answers?: Answers;
  /** Booked although it was reversed before it came: many hosts do not remember a Reversal that they answered 25. */
  readonly forgetsReversals?: boolean;
}

/**
 * - `now`: after the link's latency.
 * - `late`: the bank acts at once, its answer arrives after the caller's time-out.
 * - `never`: the bank acts at once, its answer is lost.
 * - `delayed`: the message reaches the bank after the caller's time-out, behind whatever was sent meanwhile.
 * - `lost`: the message never reaches the bank, and nobody knows.
 * - `not_sent`: the message certainly does not leave.
 */
export type Answers =
  | "now"
  | "late"
  | "never"
  | "delayed"
  | "lost"
  | "not_sent"
  /** The bank acts at once, its answer takes so long. */
  | { readonly afterMs: number }
  /** The link breaks at once; the message reaches the bank so much later, and its answer nobody. */
  | { readonly breaksAndArrivesAfterMs: number };

/** Returns the behaviour for a message; undefined if the rule does not apply to it. */
export type Rule = (message: AcquirerMessage) => Behaviour | undefined;

/** A rule for the next message of one command, and for no other. */
export function next(command: AcquirerMessage["command"], behaviour: Behaviour): Rule {
  let used = false;
  return (message) => {
    if (used || message.command !== command) return undefined;
    used = true;
    return behaviour;
  };
}
