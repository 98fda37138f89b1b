import { type FindingCode, findings, type Words } from "./findings.ts";
import type { CaseResult } from "./judge.ts";
import type { RequestResult } from "./post.ts";

export type DiagnosisCode = "stopped_answering" | "verifies_nothing" | "takes_nothing" | "clock_off";

/** The common cause of several failures. */
export interface Diagnosis extends Required<Words> {
  readonly code: DiagnosisCode;
  /** The cases that fail for it, the one that shows it best first. */
  readonly cases: readonly string[];
}

/** Freshness allows 300 s; the other clock is seen in whole seconds and with the network's delay. */
const clockToleranceMs = 295_000;

/** The first thing to fix: until then the other findings mean little. */
export function diagnose(results: readonly CaseResult[]): readonly Diagnosis[] {
  return [stopped(results), clockOff(results) ?? takesNothing(results), verifiesNothing(results)].filter(
    (diagnosis) => diagnosis !== undefined,
  );
}

/** It accepted connections before, and does not any more. */
function stopped(results: readonly CaseResult[]): Diagnosis | undefined {
  const at = results.findIndex(({ finding }) => finding?.code === "no_connection");
  const [last, lost] = [results[at - 1], results[at]];
  // If an earlier post of its own was answered, the case itself explains better what stopped the endpoint.
  if (last === undefined || lost === undefined || lost.exchanges.length > 1) return undefined;
  return {
    code: "stopped_answering",
    cases: [lost.code],
    means: `After ${last.code} the endpoint accepts no more connections: usually its process has ended.`,
    fix: `Look in your log for what ${last.code} threw. No request may end the process.`,
    documentation: "/docs/partner/receive#four-rules",
  };
}

/** Every authentic notification fails in the same way, so each case's own words are beside the point. */
function takesNothing(results: readonly CaseResult[]): Diagnosis | undefined {
  const tried = results.filter(({ expects, verdict }) => expects === "accepted" && verdict !== "not_run");
  const [first] = tried;
  if (first?.finding === undefined) return undefined;
  const { code, means, fix, documentation } = first.finding;
  const isSame = ({ finding, exchanges }: CaseResult) =>
    finding?.code === code &&
    exchanges.length > 0 &&
    statusOf(exchanges.at(-1)?.came) === statusOf(first.exchanges[0]?.came);
  if (tried.length < 2 || !tried.every(isSame)) return undefined;
  const proveNothing = code === "refused_authentic" ? " Until then, its correct refusals prove nothing." : "";
  const others = results.filter(({ expects, finding }) => {
    return expects === "refused" && finding?.means === means && finding.fix === fix;
  });
  const failed = [...tried, ...others].map((one) => one.code);
  return { code: "takes_nothing", cases: failed, means: `${means}${proveNothing}`, fix, documentation };
}

function verifiesNothing(results: readonly CaseResult[]): Diagnosis | undefined {
  const tried = results.filter(({ expects, exchanges }) => expects === "refused" && exchanges.length > 0);
  const accepted = tried.filter(({ finding }) => finding?.code === ("accepted_forgery" satisfies FindingCode));
  const forged = accepted.filter(({ code }) => code !== "wrong-method");
  if (forged.length < 4 || forged.length < tried.length - 1) return undefined;
  return {
    code: "verifies_nothing",
    cases: accepted.map(({ code }) => code),
    means: "The endpoint answers 2xx to every request. Anybody can report payments to it that never happened.",
    fix:
      "Verify webhook-signature and freshness, decrypt data, verify signature, and only then answer 2xx; 400 if " +
      "any of it fails. @paybell/partner and the packages for other languages do it.",
    documentation: findings.accepted_forgery.documentation,
  };
}

/** HTTP answers carry the sender's time. */
function clockOff(results: readonly CaseResult[]): Diagnosis | undefined {
  const refused = results.filter(({ finding }) => finding?.code === "refused_authentic");
  const { came, atMs = 0 } = refused[0]?.exchanges.at(-1) ?? {};
  const date = came !== undefined && "status" in came ? Date.parse(came.headers.date ?? "") : Number.NaN;
  const aheadMs = date - atMs;
  if (Number.isNaN(aheadMs) || Math.abs(aheadMs) < clockToleranceMs) return undefined;
  const off = `${Math.round(Math.abs(aheadMs) / 1_000)} s ${aheadMs > 0 ? "ahead of" : "behind"}`;
  return {
    code: "clock_off",
    cases: refused.map(({ code }) => code),
    means: `The endpoint's clock is ${off} this machine's. Freshness allows 300 s: it refuses every notification.`,
    fix: "Set the clock by NTP (timedatectl), on the machine that is wrong.",
    documentation: "/docs/partner/headers#the-headers-signature",
  };
}

function statusOf(came: RequestResult | undefined): number | string {
  if (came === undefined) return "";
  return "status" in came ? came.status : came.failure;
}
