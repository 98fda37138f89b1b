import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type ReceiverOptions, receiver } from "@paybell/partner";
import {
  type CaseResult,
  type CertifyExchange,
  type CertifyReport,
  caseCodes,
  certify,
  countsOf,
  marks,
  type RequestResult,
  reportJson,
  sealerKeys,
} from "@paybell/partner/certify";
import {
  allowHttpOption,
  credentialsOption,
  isLoopback,
  readClientSettings,
  receiverOptionsOf,
  withSealing,
} from "./client/connection.ts";
import { differenceOf } from "./open/signature.ts";
import { type AnyCommand, acts, command, confirm, withConfirmation } from "./shell/command.ts";
import type { CommandContext } from "./shell/context.ts";
import { exitCodes, Failure } from "./shell/failure.ts";
import { readNamedFile } from "./shell/files.ts";
import { columns, printable, type Style, showing, styleFor } from "./shell/output.ts";

export function certifyCommand(context: CommandContext): AnyCommand {
  const made = command("certify", {
    summary: "test your own callback endpoint with requests that it must accept or refuse",
    description:
      "It POSTs invented notifications, some of them forged, only to the endpoint; Paybell itself need not run. " +
      "Each has a merchantTransId that begins with CERTIFY- and tid CERTIFY1. Before it sends to another machine, it " +
      `asks.\n\nCases: ${caseCodes.join(", ")}.`,
    examples: [
      "paybell certify localhost:3000/ipn",
      "paybell certify localhost:3000/ipn --only duplicate,reordered",
      "paybell certify localhost:3000/ipn --save failed && paybell open failed/sale-1.json",
      "paybell certify https://staging.example/ipn --credentials paybell.json --yes --json > report.json",
    ],
    exitCodes: { 0: "every case passed", 1: "a case failed, or the endpoint could not be reached" },
  })
    .argument("<url>", "the endpoint: https://…, or localhost:3000/ipn for http:// on this machine")
    .option("--only <cases>", "run only these cases, separated by commas", listed)
    .option(...credentialsOption)
    .option("--ca <file>", "also trust this certificate, in PEM")
    .option("--save <folder>", "write what was POSTed in each failed case, as `paybell open` reads it")
    .option("--allow-missing-headers", "the endpoint is configured without the webhook- headers")
    .option(...allowHttpOption);
  const confirmed = withConfirmation(withSealing(made), "send to another machine without asking");
  return acts(context, confirmed, async (options, text) => {
    const url = endpointUrl(text, options.allowHttp === true);
    const { only, save: folder } = options;
    const { credentials } = await readClientSettings(context, options);
    const keys = readable(receiverOptionsOf(credentials));
    const ca = await trusted(context, url, options.ca);
    const run = randomBytes(4).toString("hex");
    const caseCount = only?.length ?? caseCodes.length;
    if (!options.json) context.stdout.write(`${warning(url, run, caseCount).join("\n")}\n`);
    if (!isLoopback(url)) await confirm(context, options, question(url, caseCount));
    const report = await showing(context, "certify", caseCount, (onCase) =>
      certify({
        ...{ url, keys: sealerKeys(keys), run, ca, signal: context.signal, nowMs: context.nowMs, onCase },
        ...(only === undefined ? {} : { only }),
        allowMissingHeaders: options.allowMissingHeaders === true,
      }),
    );
    if (folder !== undefined) await save(resolve(context.workingDirectory, folder), report);
    return {
      value: reportJson(report),
      lines: reportLines(report, styleFor(context.stdout, context.env)),
      code: report.passed ? exitCodes.ok : exitCodes.negative,
    };
  });
}

/** A file for each POST of a failed case: `sale-1.json`. @throws Failure if the folder cannot be written */
async function save(folder: string, { results }: CertifyReport): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    for (const { code, exchanges } of results.filter(({ verdict }) => verdict === "failed")) {
      for (const [at, { step }] of exchanges.entries()) {
        const { headers, body, signedString } = step.post;
        const text = JSON.stringify({ sent: step.what, headers, body, signedString }, undefined, 2);
        await writeFile(join(folder, `${code}-${at + 1}.json`), `${text}\n`);
      }
    }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Failure(`${folder} cannot be written: ${why}.`, { code: "unwritable", remedy: "Give another folder." });
  }
}

function question({ host }: URL, caseCount: number): string {
  return `${host} is another machine, and ${caseCount === 1 ? "a case" : `${caseCount} cases`} will be sent there.`;
}

/** @throws Failure naming the invalid key, the mistake and the remedy */
function readable(keys: ReceiverOptions): ReceiverOptions {
  try {
    receiver(keys);
    return keys;
  } catch (error) {
    throw new Failure(error instanceof Error ? error.message : String(error), { code: "bad_configuration" });
  }
}

function listed(text: string, before: readonly string[] = []): readonly string[] {
  const codes = text.split(",").map((code) => code.trim());
  const unknown = codes.filter((code) => !caseCodes.includes(code));
  if (unknown.length === 0) return [...new Set([...before, ...codes])];
  throw new Failure(`there is no case ${unknown.join(", ")}.`, {
    code: "unknown_case",
    remedy: `There are ${caseCodes.join(", ")}.`,
  });
}

function endpointUrl(text: string, allowHttp: boolean): URL {
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:") || url.username !== "") {
    throw new Failure(`${JSON.stringify(text)} is not the URL of an endpoint.`, {
      code: "bad_url",
      remedy: "Give it as https://shop.example/ipn or localhost:3000/ipn.",
    });
  }
  if (url.protocol === "http:" && !isLoopback(url) && !allowHttp) {
    throw new Failure(`${url.origin} is another machine, and Paybell calls only https://.`, {
      code: "insecure_url",
      remedy: "Use https://, or --allow-http for an endpoint inside your own network.",
    });
  }
  return url;
}

/**
 * The trusted CA in addition to the well-known ones: the named file, otherwise the sandbox's receiver if it is there.
 */
async function trusted(context: CommandContext, url: URL, ca: string | undefined): Promise<string | undefined> {
  if (ca !== undefined) return readNamedFile(context, ca, "bad_ca_file");
  if (url.protocol !== "https:" || !isLoopback(url)) return undefined;
  const home = context.env["PAYBELL_HOME"] ?? ".paybell";
  const pem = await readFile(resolve(context.workingDirectory, home, "receiver.pem"), "utf8").catch(() => "");
  // Its private key is in the same file.
  return /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/.exec(pem)?.[0];
}

const textColumns = 100;
/** Enough of a response's body to recognise the server. */
const bodyCharactersShown = 160;
const signedCharactersShown = 2_000;

/** Announces what is about to be sent, and how to distinguish it from real payments. */
function warning(url: URL, run: string, caseCount: number): string[] {
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
function reportLines(report: CertifyReport, style: Style): string[] {
  const { results, diagnoses, timeoutMs } = report;
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
    summary(report),
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
