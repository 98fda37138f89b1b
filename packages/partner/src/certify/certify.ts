import { acceptedCases } from "./accepted.ts";
import {
  type Bench,
  type Case,
  type CaseResult,
  type CaseVerdict,
  type CertifyExchange,
  type Diagnosis,
  diagnose,
  type FindingCode,
  findings,
  judge,
  refusalVariants,
} from "./judge.ts";
import { Facts, makePost, type SealerKeys } from "./notification.ts";
import { type PostOptions, post, postDefaults, type RequestResult } from "./post.ts";
import { misdirectedCases, refusedCases } from "./refused.ts";

/** Every case, in the order in which they run. */
export const cases: readonly Case[] = [...acceptedCases, ...refusedCases, ...misdirectedCases];

/** The case that no post of its own makes: whether the refusals look alike. */
export const alikeCase = {
  code: "refusals-alike",
  title: "the refusals of forged notifications, compared",
  expects: "refused",
} as const satisfies Pick<Case, "code" | "title" | "expects">;

export const caseCodes: readonly string[] = [...cases.map(({ code }) => code), alikeCase.code];

export interface CertifyOptions {
  readonly url: URL;
  /** The keys and settings with which the endpoint opens its notifications. */
  readonly keys: SealerKeys;
  /** Codes of the cases to run; default all. */
  readonly only?: readonly string[];
  /** The endpoint accepts IPNs without the webhook- headers, so that case is left out. */
  readonly allowMissingHeaders?: boolean;
  /** A certificate to trust in addition to the well-known authorities, in PEM. */
  readonly ca?: string | undefined;
  /** Distinguishes this run's notifications from others. */
  readonly run: string;
  readonly signal?: AbortSignal;
  readonly nowMs: () => number;
  /** Called before each case with the number of finished ones. */
  readonly onCase?: (done: number, total: number) => void;
  readonly limits?: Partial<Pick<PostOptions, "timeoutMs" | "connectTimeoutMs" | "pieces" | "gapMs" | "connect">>;
}

export interface CertifyReport {
  readonly url: string;
  readonly run: string;
  readonly timeoutMs: number;
  readonly sealing: SealerKeys["sealing"];
  readonly signing: SealerKeys["signing"];
  readonly fields: SealerKeys["fields"];
  readonly durationMs: number;
  readonly passed: boolean;
  readonly results: readonly CaseResult[];
  /** Common causes of several failures: fix these first. */
  readonly diagnoses: readonly Diagnosis[];
}

/** Runs the cases one after the other against an endpoint. It rejects only when the signal aborts. */
export async function certify(options: CertifyOptions): Promise<CertifyReport> {
  const startedMs = performance.now();
  const { keys } = options;
  const facts = new Facts(options.run, options.nowMs);
  const bench: Bench = {
    facts,
    keys,
    post: (notification, deviation) => makePost(keys, notification, options.nowMs(), deviation),
  };
  const limits: PostOptions = { ...postDefaults, ...options.limits, ca: options.ca, signal: options.signal };

  async function run(one: Case): Promise<CaseResult> {
    const { code, title, expects } = one;
    const exchanges: CertifyExchange[] = [];
    for (const step of one.steps(bench)) {
      const came = await post(options.url, step.post, limits);
      const finding = judge(one, step, came);
      exchanges.push({ step, came, finding, atMs: options.nowMs() });
      if (finding !== undefined) return { code, title, expects, verdict: "failed", exchanges, finding };
    }
    return { code, title, expects, verdict: "passed", exchanges, finding: undefined };
  }

  const chosen = cases.filter(isChosen(options.only));
  const results: CaseResult[] = [];
  let unreachable = false;
  for (const [at, one] of chosen.entries()) {
    options.onCase?.(at, chosen.length);
    const isAllowed = one.code === "missing-headers" && options.allowMissingHeaders === true;
    const leftOut = isAllowed ? "--allow-missing-headers" : one.leftOut?.(keys);
    if (unreachable) results.push(untried(one, "not_run", "the endpoint could not be reached"));
    else if (leftOut !== undefined) results.push(untried(one, "left_out", leftOut));
    else results.push(await run(one));
    unreachable ||= isUnreachable(results.at(-1));
  }
  if (options.only === undefined || options.only.includes(alikeCase.code)) results.push(compared(results));
  const shown = options.only === undefined ? results : results.filter(({ code }) => options.only?.includes(code));
  return {
    url: options.url.href,
    run: options.run,
    timeoutMs: limits.timeoutMs,
    sealing: keys.sealing,
    signing: keys.signing,
    fields: keys.fields,
    durationMs: Math.round(performance.now() - startedMs),
    passed: shown.every(({ verdict }) => verdict === "passed" || verdict === "left_out"),
    results: shown,
    diagnoses: diagnose(shown),
  };
}

/** The comparison needs the refusals, even if only the comparison was requested. */
function isChosen(only: readonly string[] | undefined): (one: Case) => boolean {
  if (only === undefined) return () => true;
  const compares = only.includes(alikeCase.code);
  return ({ code, alike = false }) => only.includes(code) || (compares && alike);
}

function untried({ code, title, expects }: Case, verdict: CaseVerdict, note: string): CaseResult {
  return { code, title, expects, verdict, exchanges: [], finding: undefined, note };
}

/** These fail before a request is sent, so every other case would fail in the same way. */
const unreachableCodes: readonly string[] = [
  "no_connection",
  "no_tls",
  "certificate_expired",
  "certificate_name",
  "tls",
] satisfies FindingCode[];

function isUnreachable(result: CaseResult | undefined): boolean {
  return unreachableCodes.includes(result?.finding?.code ?? "");
}

function compared(results: readonly CaseResult[]): CaseResult {
  const alike = new Set(cases.filter((one) => one.alike === true).map(({ code }) => code));
  const refused = results.filter(({ code, verdict }) => alike.has(code) && verdict === "passed");
  const found = refusalVariants(
    refused.flatMap(({ code, exchanges }) => exchanges.map(({ came }) => ({ code, came }))),
  );
  const result = { ...alikeCase, exchanges: [], finding: undefined };
  if (refused.length < 2) return { ...result, verdict: "not_run", note: "fewer than two forgeries were refused" };
  if (found.length === 1) return { ...result, verdict: "passed" };
  const note = found.map(({ status, contentType, body, cases: those }) => {
    const answer = [String(status), contentType, body === "" ? "(no body)" : body].filter((part) => part !== "");
    return `${answer.join(" ")} to ${those.join(", ")}`;
  });
  const finding = { code: "distinguishable", ...findings.distinguishable } as const;
  return { ...result, verdict: "failed", finding, note: note.join("; ") };
}

/** The run as JSON. Fields may be added, and are never removed. */
export function reportJson(certificate: CertifyReport): object {
  const { results, diagnoses, url, run, passed, durationMs, sealing, signing, fields } = certificate;
  return {
    passed,
    url,
    run,
    durationMs,
    settings: { ...sealing, signing, fields },
    counts: countsOf(results),
    diagnoses,
    cases: results.map(({ code, title, expects, verdict, finding, note, exchanges }) => ({
      code,
      title,
      verdict,
      expected: expects === "accepted" ? "2xx" : "4xx",
      ...(note !== undefined && { note }),
      ...(finding !== undefined && { finding }),
      exchanges: exchanges.map((exchange) => exchangeJson(exchange, finding?.code === "refused_authentic")),
    })),
  };
}

export function countsOf(results: readonly CaseResult[]): Record<"passed" | "failed" | "notRun" | "leftOut", number> {
  const count = (wanted: CaseResult["verdict"]) => results.filter(({ verdict }) => verdict === wanted).length;
  return { passed: count("passed"), failed: count("failed"), notRun: count("not_run"), leftOut: count("left_out") };
}

function exchangeJson({ step, came }: CertifyExchange, isUnread: boolean): object {
  const { method, headers, body, signedString } = step.post;
  return {
    sent: {
      ...{ what: step.what, method, headers, bodyBytes: Buffer.byteLength(body) },
      ...(isUnread && { signedString }),
    },
    came: cameJson(came),
  };
}

function cameJson(came: RequestResult): object {
  if ("failure" in came) return { failure: came.failure, detail: came.detail, ms: came.ms };
  const { status, ms, early, headers, body } = came;
  return { status, ms, ...(early && { early }), headers, body: body.toString("utf8") };
}
