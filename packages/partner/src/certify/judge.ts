import type { Case, CaseStep } from "./case.ts";
import { type FindingCode, findings, type Words } from "./findings.ts";
import type { RequestResult } from "./post.ts";

/** Why an answer is not what was expected. */
export interface CaseFinding extends Required<Words> {
  readonly code: FindingCode;
}

/** One post and its answer. */
export interface CertifyExchange {
  readonly step: CaseStep;
  readonly came: RequestResult;
  readonly finding: CaseFinding | undefined;
  /** When the answer was there: milliseconds since 1970. */
  readonly atMs: number;
}

/** `left_out`: on purpose. `not_run`: it could not be. */
export type CaseVerdict = "passed" | "failed" | "not_run" | "left_out";

export interface CaseResult {
  readonly code: string;
  readonly title: string;
  readonly expects: Case["expects"];
  readonly verdict: CaseVerdict;
  readonly exchanges: readonly CertifyExchange[];
  readonly finding: CaseFinding | undefined;
  /** A note: an observation, or why it was not run. */
  readonly note?: string;
}

/** Judges an answer; undefined if it is as expected. */
export function judge(
  { words = {} }: Pick<Case, "words">,
  { expects }: Pick<CaseStep, "expects">,
  came: RequestResult,
) {
  const code = expects === "anything" ? undefined : findingOf(expects, came);
  if (code === undefined) return undefined;
  const { documentation } = findings[code];
  return { code, documentation, ...(words[code] ?? aboutStatus(came) ?? findings[code]) } satisfies CaseFinding;
}

function findingOf(expects: "accepted" | "refused", came: RequestResult): FindingCode | undefined {
  if ("failure" in came) return came.failure;
  const { status, early } = came;
  const isAccepted = status >= 200 && status < 300;
  // A refusal may come before the body was whole: nothing is lost by it.
  if (early && expects === "accepted" && isAccepted) return "answered_early";
  if (isAccepted) return expects === "accepted" ? undefined : "accepted_forgery";
  if (status < 200) return "bad_response";
  if (status < 400) return "redirect";
  if (status === 410) return "gone";
  if (status === 429) return "rate_limited";
  if (status >= 500) return "server_error";
  if (expects === "refused") return undefined;
  if (status === 413) return "too_large";
  return status === 404 || status === 405 ? "not_served" : "refused_authentic";
}

/** Answers that usually come from another server than the endpoint. */
function aboutStatus(came: RequestResult): Words | undefined {
  if ("failure" in came) return undefined;
  if (came.status === 401 || came.status === 403) {
    return {
      means: findings.refused_authentic.means,
      fix:
        "If your log does not show the POST, a login, a firewall or protection against forged forms (CSRF) answered " +
        `in your place: exempt this path. If it does: ${lowerFirst(findings.refused_authentic.fix)}`,
    };
  }
  if (came.status === 502 || came.status === 503 || came.status === 504) {
    return {
      means: findings.server_error.means,
      fix: "As a rule a proxy says this when your program does not answer: check that it runs, and the proxy's log.",
    };
  }
  return undefined;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
