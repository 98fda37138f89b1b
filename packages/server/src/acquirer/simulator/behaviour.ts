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

/** The behaviour that a card's token requests. */
export interface TestCard {
  /** For its Sale or PreAuth. */
  readonly first: Behaviour;
  /** For the Voids and PreAuth-Completes that follow it, which carry no token. */
  readonly followUps?: Behaviour;
}

/** Codes under which this bank approves. The ledger reverses every one but 00. */
export const approvalCodes: ReadonlySet<string> = new Set(["00", "08", "10", "11", "16"]);

/** What the simulated bank does with each card's token. */
export const testCards = [
  { token: "tok_approve", meaning: "approves" },
  {
    token: "tok_approve_<code>",
    meaning:
      "approves with 08, 10, 11 or 16, which is an ERROR and is reversed; 10 approves half of the amount, a success with " +
      "`allowPartial`",
  },
  { token: "tok_decline_<code>", meaning: "declines with any code of two digits or capitals except 00" },
  { token: "tok_timeout", meaning: "records it and never answers: ERROR 68, and a Reversal" },
  { token: "tok_late", meaning: "approves a second after the time-out: ERROR 68, and the Reversal is repeated" },
  { token: "tok_slow_<ms>", meaning: "approves after so many milliseconds, at most 600000" },
  {
    token: "tok_break_<ms>",
    meaning:
      "breaks the line at once: ERROR 68. It is recorded so many milliseconds later, at most 600000, and never answered; " +
      "the Reversal is repeated until it finds the transaction",
  },
  {
    token: "tok_then_<card>",
    meaning:
      "approves; the Voids and PreAuth-Completes that follow behave like `tok_<card>`: `tok_then_timeout`, " +
      "`tok_then_decline_51`",
  },
] as const;

const slowMsMax = 600_000;
const prefix = "tok_";
const thenPrefix = "tok_then_";

/** A card without special treatment; also used for a message without a card. */
export const plainCard: TestCard = { first: {} };

/** The behaviour that a card token requests; undefined for a token that is not a test card. */
export function testCard(token: string): TestCard | undefined {
  if (token.startsWith(thenPrefix)) return thenCard(token.slice(thenPrefix.length));
  const first = token.startsWith(prefix) ? behaviourNamed(token.slice(prefix.length)) : undefined;
  return first && { first };
}

function thenCard(name: string): TestCard | undefined {
  const followUps = behaviourNamed(name);
  return followUps && { first: {}, followUps };
}

function behaviourNamed(name: string): Behaviour | undefined {
  if (name === "approve") return {};
  if (name === "timeout") return { answers: "never" };
  if (name === "late") return { answers: "late" };
  const [, verb, argument = ""] = /^(approve|decline|slow|break)_([0-9A-Z]+)$/.exec(name) ?? [];
  if (verb === "approve" && approvalCodes.has(argument)) return { approves: argument };
  if (verb === "decline" && argument.length === 2 && argument !== "00") return { declines: argument };
  if (!/^\d{1,6}$/.test(argument) || Number(argument) > slowMsMax) return undefined;
  if (verb === "slow") return { answers: { afterMs: Number(argument) } };
  return verb === "break"
    ? { answers: { breaksAndArrivesAfterMs: Number(argument) }, forgetsReversals: true }
    : undefined;
}

/** The result of a Settlement on these terminals; everything else on them is normal. */
const testTerminals: Readonly<Record<string, (afterUpload: boolean) => Behaviour | undefined>> = {
  SETTLE_REFUSED: () => ({ declines: "58" }),
  SETTLE_MISMATCH: (afterUpload) => (afterUpload ? undefined : { declines: "95" }),
  SETTLE_SILENT: () => ({ answers: "lost" }),
};

/** The result of a message because of its terminal; undefined if it is not a test terminal. */
export function testTerminal(message: AcquirerMessage): Behaviour | undefined {
  const { tid } = message;
  if (message.command !== "SETTLEMENT" || !Object.hasOwn(testTerminals, tid)) return undefined;
  return testTerminals[tid]?.(message.afterUpload);
}
