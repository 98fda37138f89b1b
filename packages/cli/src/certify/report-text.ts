import {
  type CaseResult,
  type CertifyExchange,
  type CertifyReport,
  countsOf,
  marks,
  type RequestResult,
} from "@paybell/partner/certify";
import { differenceOf } from "../open/signature.ts";
import { columns, printable, type Style } from "../shell/output.ts";

const textColumns = 100;
/** Enough of a response's body to recognise the server. */
const bodyCharactersShown = 160;
const signedCharactersShown = 2_000;

/** Announces what is about to be sent, and how to distinguish it from real payments. */
export function warning(url: URL, run: string, caseCount: number): string[] {
  return [
    `certify ${url.href}`,
    ...paragraph(
      `POSTs invented notifications, sealed with your keys: ${caseCount} ${caseCount === 1 ? "case" : "cases"}, ` +
        "some of them forged. No card is charged. To recognise them: merchantTransId begins with " +
        `${marks.merchantTransId}${run}-, tid is ${marks.tid}, mid ${marks.mid}, each Sale is of 1 VND. Let nothing ` +
        "be shipped for them, and delete what they left.",
    ),
    "",
  ];
}

/** The run as a person reads it. */
export function reportLines(certificate: CertifyReport, style: Style): string[] {
  const { results, diagnoses, timeoutMs } = certificate;
  const explained = new Set(diagnoses.flatMap(({ cases }) => cases));
  const failed = results.filter(({ code, verdict }) => verdict === "failed" && !explained.has(code));
  return [
    ...columns(results.map(row)).map((line) => coloured(line, style)),
    "",
    ...diagnoses.flatMap(({ code, cases, means, fix, documentation }) => [
      style.strong(`FIRST  ${headlines[code]}`),
      ...section("cases", cases.join(", ")),
      ...came(
        results.find((one) => one.code === cases[0]),
        timeoutMs,
      ),
      ...section("means", means),
      ...section("fix", fix),
      ...section("see", documentation && `${documentation}, at the service`),
      "",
    ]),
    ...groups(failed).flatMap((those) => [...failure(those, timeoutMs, style), ""]),
    summary(certificate),
  ];
}

/** Groups failures with the same text, so that it is printed once. */
function groups(failed: readonly CaseResult[]): CaseResult[][] {
  const byWords = new Map<string, CaseResult[]>();
  for (const result of failed) {
    const words = JSON.stringify(result.finding);
    byWords.set(words, [...(byWords.get(words) ?? []), result]);
  }
  return [...byWords.values()];
}

function coloured(line: string, { good, bad, faint }: Style): string {
  return line
    .replace(/^ok/, good)
    .replace(/^FAIL/, bad)
    .replace(/^(not run|left out).*/, faint);
}

const headlines = {
  stopped_answering: "The endpoint stopped answering.",
  clock_off: "The clocks differ.",
  takes_nothing: "No authentic notification is accepted.",
  verifies_nothing: "Nothing is verified.",
} as const;

const wanted = { accepted: "2xx", refused: "4xx" } as const;
const verdicts = { passed: "ok", failed: "FAIL", not_run: "not run", left_out: "left out" } as const;

function row({ verdict, code, title, expects, exchanges, finding, note }: CaseResult): string[] {
  const last = exchanges.at(-1)?.came;
  const status = last === undefined ? "" : "failure" in last ? last.failure : String(last.status);
  const isWrong = verdict === "failed" && status !== "";
  const came = isWrong
    ? `${status}, ${finding?.code === "answered_early" ? "too early" : `not ${wanted[expects]}`}`
    : status;
  const seen = verdict === "not_run" || verdict === "left_out" ? `(${note ?? ""})` : title;
  const totalMs = exchanges.reduce((sum, exchange) => sum + exchange.came.ms, 0);
  return [verdicts[verdict], code, came, last === undefined ? "" : `${totalMs} ms`.padStart(8), seen];
}

function failure(those: readonly CaseResult[], timeoutMs: number, style: Style): string[] {
  const [first] = those;
  const { code = "", means = "", fix = "", documentation = "" } = first?.finding ?? {};
  return [
    ...paragraph(those.map((one) => one.code).join(", "), textColumns - 6).map((line, at) =>
      style.strong(`${at === 0 ? "FAIL" : ""}`.padEnd(6) + line),
    ),
    ...section("finding", code),
    ...came(first, timeoutMs),
    ...section("means", means),
    ...section("fix", fix),
    ...section("see", documentation && `${documentation}, at the service`),
  ];
}

function came(result: CaseResult | undefined, timeoutMs: number): string[] {
  const { exchanges = [], note } = result ?? {};
  if (exchanges.length === 0 && note !== undefined) {
    return [
      ...section("expected", "the same answer to every forgery"),
      ...note.split("; ").flatMap((one) => section("came", printable(one))),
    ];
  }
  return exchanges.flatMap((exchange: CertifyExchange) => {
    const { method, body } = exchange.step.post;
    const { what, expects } = exchange.step;
    return [
      ...section("sent", `${what}${method === "GET" ? "" : `: ${method}, ${bytes(body)}`}`),
      ...(expects === "anything" ? [] : section("expected", expected(expects, timeoutMs))),
      ...section("came", cameText(exchange.came)),
      ...signed(exchange),
    ];
  });
}

/** Compared with the string that the endpoint answered with, if it did. */
function signed({ step, came, finding }: CertifyExchange): string[] {
  const { signedString } = step.post;
  if (finding?.code !== "refused_authentic" || signedString === undefined || "failure" in came) return [];
  const [theirs] = /\b(?:\w+=[^&\r\n]*&)+\w+=[^&\r\n<"]*/.exec(came.body.toString("utf8")) ?? [];
  const lines = section("signed", printable(cut(signedString, signedCharactersShown)));
  return theirs === undefined ? lines : [...lines, ...section("yours", printable(compared(signedString, theirs)))];
}

function compared(ours: string, theirs: string): string {
  const difference = differenceOf(ours, theirs);
  if (difference === undefined) return "is the same string: then the key is another";
  const { unit, position } = difference;
  return `differs first in ${unit} ${position}: ${difference.theirs}, where ${difference.ours} was signed`;
}

function expected(expects: "accepted" | "refused", timeoutMs: number): string {
  return `${wanted[expects]} within ${timeoutMs / 1_000} s`;
}

function cameText(came: RequestResult): string {
  if ("failure" in came) return `${failureWords[came.failure]}: ${printable(came.detail)}`;
  const { status, ms, early, headers } = came;
  const text = printable(came.body.toString("utf8").trim());
  const shown = cut(text, bodyCharactersShown);
  const where = headers.location === undefined ? "" : `, to ${printable(headers.location)}`;
  const moment = early ? "before the body was complete" : `after ${ms} ms`;
  return `${status} ${moment}${where}${shown === "" ? "" : `: ${shown}`}`;
}

function cut(text: string, charactersMax: number): string {
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;
}

const failureWords = {
  no_connection: "no connection",
  no_tls: "no TLS",
  certificate_expired: "no certificate that is valid today",
  certificate_name: "another host's certificate",
  tls: "no trusted TLS connection",
  timeout: "nothing in time",
  reset: "the connection ended without an answer",
  bad_response: "not HTTP",
} as const;

function bytes(text: string): string {
  const count = Buffer.byteLength(text);
  return count < 10_000 ? `${count} bytes` : `${(count / 1_000_000).toFixed(1)} MB`;
}

function summary({ passed, results, durationMs }: CertifyReport): string {
  const { passed: good, failed, notRun, leftOut } = countsOf(results);
  const rest = [`${good} passed`, `${failed} failed`];
  if (notRun > 0) rest.push(`${notRun} not run`);
  if (leftOut > 0) rest.push(`${leftOut} left out`);
  return `${passed ? "PASSED" : "FAILED"}: ${rest.join(", ")}, in ${(durationMs / 1_000).toFixed(1)} s`;
}

const labelColumns = 12;

function section(label: string, text: string): string[] {
  return paragraph(text, textColumns - labelColumns).map((line, at) => {
    return `  ${(at === 0 ? label : "").padEnd(labelColumns - 2)}${line}`;
  });
}

/** Broken at spaces. A word that is longer than a line stays whole: it may be a URL. */
function paragraph(text: string, width = textColumns): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
