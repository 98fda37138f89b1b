import type { CertifyReport } from "./certify.ts";
import type { CaseResult, CertifyExchange } from "./judge.ts";
import type { RequestResult } from "./post.ts";

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
