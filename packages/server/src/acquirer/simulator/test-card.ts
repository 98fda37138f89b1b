/** What the simulated bank decides about one test card, and when its answer arrives. */
export interface Behaviour {
  readonly responseCode: string;
  readonly approved: boolean;
  /** `never` and `late` (after the caller's time-out) are booked all the same: that is what puts a command in doubt. */
  readonly answers: "now" | "never" | "late" | { readonly afterMs: number };
}

/** Codes under which this bank approves. The ledger reverses every one but 00. */
export const approvalCodes: ReadonlySet<string> = new Set(["00", "08", "10", "11", "16"]);

export const testCards = [
  { token: "tok_approve", meaning: "approved" },
  { token: "tok_approve_<code>", meaning: "approved with another code: 08, 10, 11 or 16, which is reversed" },
  { token: "tok_decline_<code>", meaning: "declined with any code but 00" },
  { token: "tok_timeout", meaning: "booked by the bank, never answered" },
  { token: "tok_late", meaning: "approved, the answer arrives after the time-out" },
  { token: "tok_slow_<ms>", meaning: "approved after so many milliseconds, at most 600000" },
] as const;

const slowMsMax = 600_000;

/** The behaviour a card token asks for; undefined for a token that is no test card. */
export function testCard(token: string): Behaviour | undefined {
  if (token === "tok_approve") return approval("00", "now");
  if (token === "tok_timeout") return approval("00", "never");
  if (token === "tok_late") return approval("00", "late");
  const [, verb, code = ""] = /^tok_(approve|decline|slow)_([0-9A-Z]+)$/.exec(token) ?? [];
  if (verb === "approve" && approvalCodes.has(code)) return approval(code, "now");
  if (verb === "decline" && code.length === 2 && code !== "00") return { ...approval(code, "now"), approved: false };
  if (verb === "slow" && /^\d{1,6}$/.test(code) && Number(code) <= slowMsMax) {
    return approval("00", { afterMs: Number(code) });
  }
  return undefined;
}

function approval(responseCode: string, answers: Behaviour["answers"]): Behaviour {
  return { responseCode, approved: true, answers };
}
