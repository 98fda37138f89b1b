import type { Deviation, Facts, SampleNotification, SealerKeys } from "./notification.ts";
import type { HttpPost, RequestResult } from "./post.ts";

/** The expected answer to a case, or to one of its posts: 2xx in time, or 4xx. */
export type Expectation = "accepted" | "refused";

/** One requirement for an endpoint. */
export interface Case {
  /** Stable: scripts name it. */
  readonly code: string;
  /** The post, in a few words. */
  readonly title: string;
  readonly expects: Expectation;
  /** Whether its refusal must look like the others: only the service can make a valid one. */
  readonly alike?: boolean;
  /** Why it does not apply to an endpoint with these settings; undefined: it does. */
  readonly leftOut?: (keys: SealerKeys) => string | undefined;
  readonly steps: (bench: Bench) => readonly CaseStep[];
  /** The meaning of a failure and its remedy, if this case knows more than the finding. */
  readonly words?: Partial<Readonly<Record<FindingCode, Words>>>;
}

/** One post of a case, and its expected answer. */
export interface CaseStep {
  readonly what: string;
  readonly post: HttpPost;
  /** `anything`: the answer does not matter, only that of the next step. */
  readonly expects: Expectation | "anything";
}

/** The tools for making a case's posts. */
export interface Bench {
  readonly facts: Facts;
  readonly keys: SealerKeys;
  /** Signed and encrypted now, except for the deviations. */
  post(notification: SampleNotification, deviation?: Deviation): HttpPost;
}

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

export interface Words {
  /** The consequence in production. */
  readonly means: string;
  readonly fix: string;
  /** The guide's section, relative to the service's address, where it is not the finding's own. */
  readonly documentation?: string;
}

const repeated =
  "Paybell treats this as not received: it repeats the notification for about three days, then parks it. " +
  "The customer has paid, and your books do not show it.";

/** Used if a case has no words of its own. */
export const findings = {
  accepted_forgery: {
    means: "Anyone who knows the URL can report a payment that never happened: goods leave, and no money comes.",
    fix: "Verify before anything else, and answer 400 when it fails.",
    documentation: "/docs/partner/other-languages#the-receiver",
  },
  answered_early: {
    means:
      "A 2xx ends the delivery. It came before the whole body had arrived: the rest, if lost, is never sent again.",
    fix: "Read the whole body, verify it, store the IPN, and then answer.",
    documentation: "/docs/partner/receive#four-rules",
  },
  bad_response: {
    means: `The answer is not HTTP. ${repeated}`,
    fix: "Check which program listens on this port: the endpoint must speak HTTP/1.1.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
  certificate_expired: {
    means: `Paybell calls nobody whose certificate is not valid today. ${repeated}`,
    fix: "Renew the certificate, have the server load it, and look at this machine's clock.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
  certificate_name: {
    means: `Paybell calls nobody whose certificate is another host's. ${repeated}`,
    fix: "Serve a certificate that names the host of the URL, or register the host that it names.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
  distinguishable: {
    means: "Answers that differ tell an attacker which check failed, and so how far a forgery got.",
    fix: "Give every forgery the same answer: one status, one body. Write the reason to your own log.",
    documentation: "/docs/partner/other-languages#the-receiver",
  },
  gone: {
    means: "410 means that the URL is gone: a registered one gets nothing until POST /v1/endpoints/<id>/close.",
    fix: "Never answer 410 to a POST: use 400 for a forgery, and 5xx for an IPN that should come again.",
    documentation: "/docs/partner/receive#what-your-answer-does",
  },
  no_connection: {
    means: `Paybell cannot reach it either. ${repeated}`,
    fix: "Start the endpoint, and check the host and the port of the URL.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
  no_tls: {
    means: `Paybell speaks HTTPS alone. ${repeated}`,
    fix: "Let the server, or a proxy before it, terminate TLS on this port. To certify without, use an http:// URL.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
  not_served: {
    means: `No route accepts a POST at this path. ${repeated}`,
    fix: "Check the path of the URL, and that the route accepts POST.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
  rate_limited: {
    means: "Paybell sends as fast as terminals sell, and waits after a 429: IPNs come late, by minutes.",
    fix: "Exempt the addresses of Paybell from the rate limit, or agree on maxPerSecond with the operator.",
    documentation: "/docs/partner/receive#what-your-answer-does",
  },
  redirect: {
    means: `Paybell never follows a redirect. ${repeated}`,
    fix: "Register the URL that the redirect names (https, the exact path, with or without the trailing slash).",
    documentation: "/docs/partner/receive#what-your-answer-does",
  },
  refused_authentic: {
    means: repeated,
    fix:
      "Your own log has the reason. Usually a key is not the one that registration showed, the body was parsed " +
      "before it was verified, or cipher, encoding or signing differ from what is registered (GET /v1/self).",
    documentation: "/docs/partner/headers#why-does-my-signature-not-match",
  },
  reset: {
    means: `The connection ended before there was an answer. ${repeated}`,
    fix: "Look for a crash in your log, and for a proxy that cuts the connection.",
    documentation: "/docs/partner/receive#what-your-answer-does",
  },
  server_error: {
    means: repeated,
    fix: "Look in your log for the error that was thrown.",
    documentation: "/docs/partner/receive#what-your-answer-does",
  },
  timeout: {
    means: `Paybell waits 15 s for the whole answer, no longer. ${repeated}`,
    fix: "Store the IPN, answer, and do the slow part afterwards, from what you stored.",
    documentation: "/docs/partner/receive#four-rules",
  },
  tls: {
    means: `Paybell does not send to a server whose certificate it cannot verify. ${repeated}`,
    fix: "Serve the whole certificate chain for this host name. Pass your own certificate with --ca.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
  too_large: {
    means: `A limit refused the body before your program saw it. ${repeated}`,
    fix: "Raise the limit of the framework and of every proxy in front of it.",
    documentation: "/docs/partner/go-live#2-on-your-side",
  },
} satisfies Readonly<Record<string, Required<Words>>>;

/** The problem of an answer: stable codes for programs. */
export type FindingCode = keyof typeof findings;

/** One refusal as its sender sees it. */
export interface ObservedRefusal {
  readonly code: string;
  readonly came: RequestResult;
}

/** Refusals that look the same: status, type and body, ignoring times, ids and counters. */
export interface RefusalVariant {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** The cases that were refused so. */
  readonly cases: readonly string[];
}

/** The variants of all refusals, the most frequent first. More than one tells a forger which check failed. */
export function refusalVariants(refusals: readonly ObservedRefusal[]): readonly RefusalVariant[] {
  const byLook = new Map<string, { status: number; contentType: string; body: string; cases: Set<string> }>();
  for (const { code, came } of refusals) {
    if ("failure" in came) continue;
    const contentType = came.headers["content-type"] ?? "";
    const body = masked(came.body.toString("utf8"));
    const key = JSON.stringify([came.status, contentType, body]);
    const look = byLook.get(key) ?? { status: came.status, contentType, body, cases: new Set<string>() };
    look.cases.add(code);
    byLook.set(key, look);
  }
  return [...byLook.values()]
    .map((look) => ({ ...look, cases: [...look.cases] }))
    .sort((one, other) => other.cases.length - one.cases.length);
}

/** A request's own id or time reveals nothing. Words are kept: "stale" and "bad signature" reveal the check. */
function masked(body: string): string {
  return body
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, "#")
    .replaceAll(/[0-9a-z]{10,}/gi, (word) => (/[0-9]/.test(word) ? "#" : word))
    .replaceAll(/[0-9]+/g, "#");
}

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
